// replaced by the room's owner
