// defines: Meaning, describe(), write_column(), gather_columns() and write_table(): columns of HDF5 tables out of option values.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "core/options.h"
#include "io/h5.h"

namespace basin {

/// The attributes that every dataset of ours carries.
struct Meaning {
  std::string units, long_name, definition;
};
void describe(h5::Object& object, const Meaning& meaning);

/// By column. `own` and the columns that every table of runs has: run_id, status, gradients, ...
using Meanings = std::map<std::string, Meaning>;
Meanings with_run_meanings(Meanings own);

/// One column over all rows; an entry is nullptr where that row has no such thing: NaN, or the empty text.
/// Whole numbers are int64 and bools u8 (attribute type = "bool") where no row lacks one; lists are their
/// TOML text.
h5::DataSet write_column(h5::Group& group, const std::string& name,
                         const std::vector<const OptionValue*>& present);

/// A row of a table, by column.
using ColumnRow = std::vector<std::pair<std::string, OptionValue>>;
/// All columns of the rows in the order of their first appearance; a row may lack some.
std::vector<std::pair<std::string, std::vector<const OptionValue*>>> gather_columns(
    const std::vector<const ColumnRow*>& rows);

/// A group of columns, of which `scale` is the rows' dimension scale.
void write_table(h5::File& file, const std::string& name, const std::string& long_name,
                 const std::string& scale, const std::vector<ColumnRow>& rows,
                 const std::function<Meaning(const std::string& column)>& meaning_of);

}  // namespace basin
