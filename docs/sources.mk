# docs
EXTRA_DIST += docs/guide.md docs/decisions/rooms.md docs/decisions/dependencies.md
