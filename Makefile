# Neuro. Needs a C compiler and make; nothing else.
#
#   make            ./neuro, the compiler and driver
#   make demo       builds it and classifies handwritten digits
#   make test       all tests; the last line is "N passed, N failed"
#   make check      strict warnings in C and C++, house rules, emitted C under strict warnings and at -O2
#   make sanitize   the tests again with sanitizers, in the compiler and in the programs
#   make fuzz       mutated programs through the compiler (N=100000 of them)
#   make bench      what the tool and its programs take
#   make install    into PREFIX (/usr/local): bin/neuro, include/neuro.h

CFLAGS = -O1
PREFIX = /usr/local
J = 2
N = 100000

# The language promises the same bits everywhere, which contracted multiply-adds would break.
FLAGS = -std=c11 -ffp-contract=off -I.
SANITIZE = -fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer

WARN = -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wsign-conversion -Wdouble-promotion -Wundef -Wvla -Wcast-qual \
       -Wwrite-strings -Wmissing-declarations
WARN_C = $(WARN) -Wstrict-prototypes -Wmissing-prototypes -Wc++-compat

TESTS = tests/unit tests/conformance tests/driver.sh tests/header.sh tests/interop examples README.md

all: neuro

# The runtime as programs link it. Hidden, so that a shared library of exported functions exports only those.
build/neuro_rt.o: neuro.h
	@mkdir -p build
	@printf '#define NEURO_RUNTIME_ONLY 1\n#define NEURO_IMPLEMENTATION\n#include "neuro.h"\n' > build/neuro_rt.c
	$(CC) $(FLAGS) -O2 -fPIC -fvisibility=hidden -c build/neuro_rt.c -o $@

# -rdynamic: `neuro run` loads programs against the runtime in this executable.
neuro: neuro_cli.c neuro.h build/neuro_rt.o
	$(CC) $(FLAGS) $(CFLAGS) -DNEURO_CLI_HOME='"$(CURDIR)"' neuro_cli.c -o $@ -rdynamic -ldl -lm

build/run: tests/run.c
	@mkdir -p build
	$(CC) -std=c11 -O1 tests/run.c -o $@

build/mutate: tests/fuzz/mutate.c neuro.h
	@mkdir -p build
	$(CC) $(FLAGS) -O1 -g tests/fuzz/mutate.c -o $@ -lm

build/generate: tests/bench/generate.c
	@mkdir -p build
	$(CC) -std=c11 -O1 tests/bench/generate.c -o $@

demo: neuro
	./neuro run examples/digits/digits.nr

test: neuro build/run build/mutate build/generate
	@build/run --cc "$(CC)" --cxx "$(CXX)" -j $(J) $(TESTS)

# The header under every strict flag, the rules that a script can hold, and the emitted C of all programs.
check: neuro build/run
	CC="$(CC)" CXX="$(CXX)" WARN="$(WARN)" WARN_C="$(WARN_C)" sh tests/check.sh
	build/run -j $(J) --emit "$(CC) -std=c11 -Wall -Wextra -Werror -I. -fsyntax-only" tests/conformance examples
	build/run -j $(J) --with "-O2 --checked" tests/conformance examples

# A compiler with sanitizers in it, and programs built with them; both must be silent, leaks included.
build/san/neuro: neuro_cli.c neuro.h build/neuro_rt.o
	@mkdir -p build/san
	$(CC) $(FLAGS) -O1 -g $(SANITIZE) neuro_cli.c -o $@ -rdynamic -ldl -lm

build/san/mutate: tests/fuzz/mutate.c neuro.h
	@mkdir -p build/san
	$(CC) $(FLAGS) -O1 -g $(SANITIZE) tests/fuzz/mutate.c -o $@ -lm

sanitize: build/san/neuro build/san/mutate build/run
	build/run --neuro build/san/neuro --cc "$(CC)" --cxx "$(CXX)" --cflags "-O1 $(SANITIZE)" --with --sanitize -j $(J) \
	    tests/unit tests/conformance examples

fuzz: build/mutate
	build/mutate -n $(N) $$(find examples/ tests/conformance/ -name '*.nr' | LC_ALL=C sort)

bench: neuro build/generate
	sh tests/bench/bench.sh

install: neuro
	mkdir -p $(DESTDIR)$(PREFIX)/bin $(DESTDIR)$(PREFIX)/include
	cp neuro $(DESTDIR)$(PREFIX)/bin/neuro
	cp neuro.h $(DESTDIR)$(PREFIX)/include/neuro.h

clean:
	rm -rf build neuro

.PHONY: all demo test check sanitize fuzz bench install clean
