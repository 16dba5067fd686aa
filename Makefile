# The commands of the project; CMake does the work (CMakeLists.txt).
#
#   make                 set up if needed, build build/cutegen and its companions
#   make demo            a recorded session, replayed: builds, execution and verdicts are live
#   make test            every test, Release build
#   make test-sanitized  every test again with AddressSanitizer and UBSan
#   make lint            clang-tidy over src/ (needs clang-tidy)
#   make clean           removes what was built; the toolchain in .cache/ stays

BUILD = build
SANITIZED = build-sanitized
JOBS := $(shell nproc)

.PHONY: all setup demo test test-sanitized lint clean
.NOTPARALLEL:

all: setup
	@scripts/build $(BUILD) Release product

setup:
	@scripts/setup

demo: all
	@demo/run.sh

test: setup
	@scripts/build $(BUILD) Release all
	@ctest --test-dir $(BUILD) --output-on-failure -j$(JOBS)

test-sanitized: setup
	@scripts/build $(SANITIZED) Debug all
	@ctest --test-dir $(SANITIZED) --output-on-failure -j$(JOBS)

lint: setup
	@scripts/build $(SANITIZED) Debug wire
	@scripts/lint $(SANITIZED)

clean:
	rm -rf $(BUILD) $(SANITIZED) .cache/tests
