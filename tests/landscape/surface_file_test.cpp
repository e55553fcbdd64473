// A surface from cell to file: orientation, cells that are not finite, tiles that are resumed, claimed,
// refused.
#include "landscape/surface_file.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "core/error.h"
#include "core/files.h"
#include "landscape/affine_frame.h"
#include "landscape/direction_band.h"
#include "landscape/point_evaluator.h"
#include "landscape/tiles.h"
#include "tests/landscape/surface_models.h"
#include "tests/support/message_of.h"
#include "tests/support/temporary_folder.h"

namespace basin::testing {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
const auto kOk = static_cast<uint8_t>(CellState::ok), kNonfinite = static_cast<uint8_t>(CellState::nonfinite),
           kFailed = static_cast<uint8_t>(CellState::failed), kTodo = static_cast<uint8_t>(CellState::todo);

SurfacePlot empty_plane(int64_t alphas, int64_t betas) {
  return {"plane",
          "loss over a plane",
          {{"beta", "1", "upwards", "c", grid_values(-1, 1, betas, {}), {}},
           {"alpha", "1", "across", "c", grid_values(-1, 2, alphas, {}), {}}},
          {{"train_loss", "nat", "loss", "landscape-loss", {}}},
          {},
          {}};
}

SurfaceRecord record_of(SurfacePlot plot, const Tile& cells) {
  plot.state = cells.state;
  plot.columns[0].values = cells.values;
  return {"plane",
          {{"kind", std::string("plane")}, {"seed", int64_t{1}}, {"alpha", std::vector<double>{}}},
          {plot},
          {},
          {}};
}

// L = a x^2 + b y^2 + c x with x = 1 + 2 alpha + beta, y = -1 + 3 beta over 7 x 4 points, from the network to
// the file and back: neither transposed nor, being not square, scrambled.
TEST(Surface, OfAKnownBowlOnAGridThatIsNotSquare) {
  const double a = 0.5, b = 2, c = -1.25;
  const auto model = std::make_shared<BowlModel>(a, b, c, 1, -1);
  Objective objective(model, LossKind::mse, at::zeros({3, 1, 1, 1}, at::kDouble), at::zeros({3}, at::kLong),
                      2);
  PointEvaluator evaluator({&objective, at::zeros({3}, at::kLong)}, {}, {});
  AffineFrame frame(evaluator.origin(), 2);
  frame.add_direction(at::tensor({2.0, 0.0}, at::kDouble));
  frame.add_direction(at::tensor({1.0, 3.0}, at::kDouble));

  const TemporaryFolder folder;
  const SurfacePlot plane = empty_plane(7, 4);
  TileFolder tiles(folder / "plane.tiles", "recipe = 1\n", {plane.cells(), 7, 1});
  compute_tiles(
      tiles,
      [&](int64_t cell, double* values) {
        const std::vector<double> at = plane.coordinates(cell);
        values[0] = evaluator.at(frame.at({at[1], at[0]})).train.loss;
        return CellState::ok;
      },
      true, [](int64_t) {});
  write_surface_file(folder / "plane.h5", record_of(plane, tiles.read_all()));

  const h5::File file = h5::File::open(folder / "plane.h5");
  const h5::DataSet loss = file.dataset("plane/train_loss");
  EXPECT_THAT(loss.shape(), ElementsAre(4, 7));
  EXPECT_THAT(loss.scale_paths(0), ElementsAre("/plane/beta"));
  EXPECT_THAT(loss.scale_paths(1), ElementsAre("/plane/alpha"));
  const std::vector<double> alpha = file.dataset("plane/alpha").read<double>(),
                            beta = file.dataset("plane/beta").read<double>(), found = loss.read<double>();
  ASSERT_EQ(alpha.size(), 7u);
  ASSERT_EQ(beta.size(), 4u);
  for (size_t j = 0; j < 4; ++j) {
    for (size_t i = 0; i < 7; ++i) {
      const double x = 1 + 2 * alpha[i] + beta[j], y = -1 + 3 * beta[j];
      // float64, numbers of order 50.
      EXPECT_NEAR(found[j * 7 + i], a * x * x + b * y * y + c * x + c * c / (4 * a), 1e-13);
    }
  }
}

TEST(Surface, IsWhatViewersDrawWithoutCode) {
  const TemporaryFolder folder;
  Tile cells{std::vector<uint8_t>(6, kOk), {1, 2, 3, 4, 5, 6}};
  write_surface_file(folder / "s.h5", record_of(empty_plane(3, 2), cells));
  const h5::File file = h5::File::open(folder / "s.h5");
  EXPECT_EQ(file.attribute_as<std::string>("schema_name"), "basin/surface");
  EXPECT_EQ(file.attribute_as<std::string>("default"), "plane");
  const h5::Group plane = file.group("plane");
  EXPECT_EQ(plane.attribute_as<std::string>("NX_class"), "NXdata");
  EXPECT_EQ(plane.attribute_as<std::string>("signal"), "train_loss");
  EXPECT_THAT(plane.attribute_as<std::vector<std::string>>("axes"), ElementsAre("beta", "alpha"));
  for (const std::string& name : plane.dataset_names()) {
    EXPECT_TRUE(plane.dataset(name).has_attribute("units")) << name;
    EXPECT_TRUE(plane.dataset(name).has_attribute("definition")) << name;
  }
}

TEST(Surface, ReadsBackWhatWasWritten) {
  const TemporaryFolder folder;
  Tile cells{{kOk, kNonfinite, kOk, kTodo, kFailed, kOk}, {1, kNone, 3, kNone, kNone, 6}};
  SurfaceRecord record = record_of(empty_plane(3, 2), cells);
  record.plots[0].attributes = {{"cosine", 0.25}};
  record.plots.push_back({"path",
                          "a path",
                          {{"update", "1", "update", "u", {0, 5}, {"start", "end"}}},
                          {{"beta", "1", "beta", "c", {0.5, kNone}}},
                          {},
                          {}});
  record.vectors = {{"bend", at::arange(5, at::kFloat)}};
  write_surface_file(folder / "s.h5", record);
  const SurfaceRecord found = read_surface_file(folder / "s.h5");
  EXPECT_EQ(found.status(), SurfaceStatus::partial);
  EXPECT_EQ(recipe_text(found.recipe), recipe_text(record.recipe));
  ASSERT_EQ(found.plots.size(), 2u);
  EXPECT_EQ(found.plots[0].state, cells.state);
  EXPECT_EQ(found.plots[0].columns[0].values[2], 3);
  EXPECT_TRUE(std::isnan(found.plots[0].columns[0].values[1]));
  EXPECT_EQ(found.plots[0].attributes, record.plots[0].attributes);
  EXPECT_THAT(found.plots[1].axes[0].labels, ElementsAre("start", "end"));
  EXPECT_THAT(found.plots[1].state, IsEmpty());
  EXPECT_TRUE(at::equal(found.vectors[0].second, at::arange(5, at::kFloat)));
}

TEST(Surface, SaysWhatDiffers) {
  EXPECT_EQ(first_difference("kind = \"a\"\nseed = 1\n", "kind = \"a\"\nseed = 2\n"),
            "seed = 1 there, seed = 2 asked for");
  EXPECT_THAT(first_difference("seed = 1\n", "seed = 1\nnorm = \"x\"\n"), HasSubstr("no norm there"));
  EXPECT_THAT(first_difference("seed = 1\nnorm = \"x\"\n", "seed = 1\n"),
              HasSubstr("nothing of it asked for"));
  EXPECT_EQ(first_difference("seed = 1\n", "seed = 1\n"), "");
}

// ---- tiles

/// Counts the cells that are measured; cell 3 is not finite, cell 5 fails as long as `broken`.
struct Grid {
  std::vector<int64_t> measured;
  bool broken = false;
  CellFunction function() {
    return [this](int64_t cell, double* values) {
      measured.push_back(cell);
      if (cell == 5 && broken) throw std::runtime_error("out of memory");
      values[0] = cell == 3 ? kNone : 1.0 / static_cast<double>(cell + 1);
      values[1] = -values[0];
      return cell == 3 ? CellState::nonfinite : CellState::ok;
    };
  }
};

constexpr TileFolder::Layout kTenCells{10, 4, 2};  // tiles of 4, 4 and 2

void run(const std::string& path, Grid& grid) {
  compute_tiles(TileFolder(path, "seed = 1\n", kTenCells), grid.function(), true, [](int64_t) {});
}

TEST(Tiles, NotFiniteIsDoneAndStays) {
  const TemporaryFolder folder;
  Grid grid, again;
  run(folder / "t", grid);
  EXPECT_EQ(grid.measured.size(), 10u);
  run(folder / "t", again);
  EXPECT_THAT(again.measured, IsEmpty());
  const Tile all = TileFolder(folder / "t", "seed = 1\n", kTenCells).read_all();
  EXPECT_EQ(all.state[3], kNonfinite);
  EXPECT_TRUE(std::isnan(all.values[6]));
  for (size_t cell = 0; cell < 10; ++cell) {
    if (cell == 3) continue;
    EXPECT_EQ(all.state[cell], kOk);
    EXPECT_EQ(all.values[2 * cell], 1.0 / static_cast<double>(cell + 1));
    EXPECT_EQ(all.values[2 * cell + 1], -all.values[2 * cell]);
  }
}

TEST(Tiles, GoOnWhereTheyWereLeft) {
  const TemporaryFolder folder;
  Grid grid;
  run(folder / "t", grid);
  const TileFolder tiles(folder / "t", "seed = 1\n", kTenCells);
  std::filesystem::remove(folder / "t/000001.h5");
  EXPECT_EQ(tiles.cells_done(), 6);
  const std::vector<uint8_t> state = tiles.read_all().state;
  EXPECT_THAT(std::vector<uint8_t>(state.begin() + 4, state.begin() + 8), Each(kTodo));
  Grid rest;
  run(folder / "t", rest);
  EXPECT_THAT(rest.measured, ElementsAre(4, 5, 6, 7));
}

TEST(Tiles, AFailedCellIsToldAndMeasuredAgainOnRequest) {
  const TemporaryFolder folder;
  Grid broken, mended;
  broken.broken = true;
  run(folder / "t", broken);
  const TileFolder tiles(folder / "t", "seed = 1\n", kTenCells);
  EXPECT_EQ(tiles.read_all().state[5], kFailed);
  EXPECT_TRUE(std::isnan(tiles.read_all().values[10]));
  run(folder / "t", mended);
  EXPECT_THAT(mended.measured, IsEmpty());
  tiles.drop_failed();
  run(folder / "t", mended);
  EXPECT_THAT(mended.measured, ElementsAre(4, 5, 6, 7));
  EXPECT_EQ(tiles.read_all().state[5], kOk);
}

TEST(Tiles, ThoseOfAnotherProcessAreLeftToIt) {
  const TemporaryFolder folder;
  const TileFolder tiles(folder / "t", "seed = 1\n", kTenCells);
  Grid grid;
  {
    const std::optional<FileLock> other = tiles.claim(1);
    ASSERT_TRUE(other);
    EXPECT_FALSE(tiles.claim(1));
    compute_tiles(tiles, grid.function(), /*wait=*/false, [](int64_t) {});
    EXPECT_THAT(grid.measured, ElementsAre(0, 1, 2, 3, 8, 9));
    EXPECT_FALSE(TileFolder::discard(folder / "t"));
  }
  compute_tiles(tiles, grid.function(), /*wait=*/false, [](int64_t) {});  // it died; its lock went with it
  EXPECT_EQ(grid.measured.size(), 10u);
}

TEST(Tiles, OfAnotherRecipeAreRefused) {
  const TemporaryFolder folder;
  Grid grid;
  run(folder / "t", grid);
  EXPECT_THAT(message_of([&] { TileFolder(folder / "t", "seed = 2\n", kTenCells); }),
              ::testing::AllOf(HasSubstr(folder / "t"), HasSubstr("seed = 1 there, seed = 2 asked for")));
  // A tile that got in from elsewhere, under the right name.
  TileFolder stranger(folder / "u", "seed = 2\n", kTenCells);
  std::filesystem::copy(folder / "t/000000.h5", folder / "u/000000.h5");
  EXPECT_THROW(stranger.read_all(), IoError);
}

// ---- the band over directions

SurfacePlot directions_plot(const std::vector<double>& values, size_t directions) {
  SurfacePlot plot{"line",
                   "loss",
                   {{"direction", "1", "d", "d", std::vector<double>(directions), {}},
                    {"alpha", "1", "a", "a", std::vector<double>(values.size() / directions), {}}},
                   {{"train_loss", "nat", "loss", "landscape-loss", values}},
                   {},
                   {}};
  return plot;
}

TEST(DirectionBand, ByHand) {
  const SurfacePlot plot = directions_plot({1, 10, 2, kNone, 6, 30}, 3);
  const std::vector<SurfaceColumn> band = direction_band(plot, plot.columns[0]);
  std::map<std::string, std::vector<double>> of;
  for (const SurfaceColumn& column : band) of[column.name] = column.values;
  // 1, 2, 6: mean 3, deviation sqrt 7, error sqrt(7 / 3), t(2 degrees) = 4.302653.
  EXPECT_NEAR(of["train_loss"][0], 3, 1e-15);
  EXPECT_NEAR(of["train_loss_error"][0], std::sqrt(7.0 / 3), 1e-15);
  EXPECT_NEAR(of["train_loss_high"][0], 3 + 4.302652729911275 * std::sqrt(7.0 / 3), 1e-8);
  EXPECT_NEAR(of["train_loss_low"][0], 3 - 4.302652729911275 * std::sqrt(7.0 / 3), 1e-8);
  EXPECT_EQ(of["train_loss_lowest"][0], 1);
  EXPECT_EQ(of["train_loss_highest"][0], 6);
  EXPECT_EQ(of["train_loss_finite"][0], 3);
  EXPECT_TRUE(std::isnan(of["train_loss"][1]) && std::isnan(of["train_loss_highest"][1]));
  EXPECT_EQ(of["train_loss_finite"][1], 2);
  EXPECT_EQ(of["train_loss_lowest"][1], 10);
}

// Ten normal draws around 5, 2,000 times over: the interval holds 5 in 95 % (three standard errors: 1.5 %).
TEST(DirectionBand, IntervalCoversTheMean) {
  std::mt19937_64 random(11);
  std::normal_distribution<double> draw(5, 2);
  std::vector<double> values(10 * 2000);
  for (double& value : values) value = draw(random);
  const SurfacePlot plot = directions_plot(values, 10);
  const std::vector<SurfaceColumn> band = direction_band(plot, plot.columns[0]);
  int held = 0;
  for (size_t i = 0; i < 2000; ++i) held += band[2].values[i] <= 5 && 5 <= band[3].values[i];
  EXPECT_NEAR(held / 2000.0, 0.95, 0.015);
}

}  // namespace
}  // namespace basin::testing
