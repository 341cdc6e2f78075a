/* Mutated programs through the compiler, in this process: mutate [-n COUNT] [-s SEED] [-t SECONDS] [-o FILE] SEED_FILE...
 *
 * Takes programs, changes bytes, tokens and lines of them, cuts and joins them, and compiles each result to C, with all
 * diagnostics rendered. It must not crash, take more than SECONDS (1) of processor time, or leave memory behind. Everything
 * follows from SEED (1) and the files, so that a failure can be repeated; the program that failed is written to FILE
 * (fuzz-failure.nr). Prints "N passed, N failed".
 */
#define _XOPEN_SOURCE 700
#define NEURO_IMPLEMENTATION
#include "neuro.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

enum { MOST_TEXT = 1 << 16 };

typedef struct buffer {
    char bytes[MOST_TEXT + 1];
    size_t len;
} buffer;

typedef struct seeds {
    buffer *items;
    size_t n;
} seeds;

/* What the signal handler needs. */
static buffer current;
static const char *failure_name = "fuzz-failure.nr";
static unsigned long iteration;

/* --- random numbers: the same on every machine --- */

static uint64_t state = 1;

static uint64_t
next_random(void)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state * UINT64_C(0x2545f4914f6cdd1d);
}

/* 0 .. n - 1 */
static size_t
pick(size_t n)
{
    return n == 0 ? 0 : (size_t)(next_random() >> 33) % n;
}

/* --- edits --- */

/* Replaces `n` bytes at `at` by others; what does not fit is cut off. */
static void
replace(buffer *b, size_t at, size_t n, const char *by, size_t by_len)
{
    static buffer old;
    size_t room;
    memcpy(&old, b, sizeof old);
    at = at < old.len ? at : old.len;
    n = n < old.len - at ? n : old.len - at;
    room = MOST_TEXT - at;
    by_len = by_len < room ? by_len : room;
    memcpy(b->bytes + at, by, by_len);
    b->len = at + by_len;
    room = MOST_TEXT - b->len;
    n = at + n;
    memcpy(b->bytes + b->len, old.bytes + n, old.len - n < room ? old.len - n : room);
    b->len += old.len - n < room ? old.len - n : room;
}

static int
is_word(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

/* The token at or after a random place. */
static size_t
pick_token(const buffer *b, size_t *len)
{
    size_t at = pick(b->len);
    size_t end;
    while (at > 0 && is_word(b->bytes[at]) && is_word(b->bytes[at - 1])) {
        at--;
    }
    while (at < b->len && (b->bytes[at] == ' ' || b->bytes[at] == '\n')) {
        at++;
    }
    end = at < b->len ? at + 1 : at;
    while (end < b->len && is_word(b->bytes[at]) && is_word(b->bytes[end])) {
        end++;
    }
    *len = end - at;
    return at;
}

static size_t
pick_line(const buffer *b, size_t *len)
{
    size_t at = pick(b->len);
    size_t end;
    while (at > 0 && b->bytes[at - 1] != '\n') {
        at--;
    }
    end = at;
    while (end < b->len && b->bytes[end] != '\n') {
        end++;
    }
    *len = end - at + (end < b->len ? 1 : 0);
    return at;
}

static const char *const words[] = {
    "func", "val", "mut", "if", "else", "match", "while", "for", "in", "loop", "return", "break", "struct", "enum", "impl", "trait",
    "const", "where", "axis", "require", "move", "self", "Self", "Tensor", "View", "Option", "Result", "::<", "&mut", "&", "@", "|",
    "=>", "->", "..", "..=", "?", "*S", "i32", "f32", "u8", "bool", "string", "0", "1", "-1", "9223372036854775807",
    "18446744073709551616", "1e999", "0x", "'", "\"", "\"{", "{", "}", "(", ")", "[", "]", "<", ">", ",", ";", ":", ".", "\\", "/*",
    "//", "\xff", "\xe2\x80\xae", "N - 1", "N / 0", "N * N", "min(N, M)", "prod(S)", ".t()", ".sum(axis: 0)", ".reshape([-1])",
    ".dot(x, k)", ".clone()", ".item()", "[.., 0]", "[1..0]", "load_npy", "main", "Tensor<f32, [?]>", "[[1.0]]", "as u8", "true"
};

enum { N_WORDS = sizeof words / sizeof *words };

/* Something deep: one piece many times. */
static void
nest(buffer *b)
{
    static const char *const pieces[] = { "(", "[", "{", "-", "!", "&", "if true { ", "match x { _ => ", "f(", "1 + ", "a.", "Vec<",
                                          "Tensor<f32, [", "/*", "|x| ", "loop { ", "else if ", "((", "x[" };
    const char *piece = pieces[pick(sizeof pieces / sizeof *pieces)];
    size_t times = 1 + pick(pick(4) == 0 ? 5000 : 40);
    size_t at = pick(b->len);
    for (size_t i = 0; i < times; i++) {
        replace(b, at, 0, piece, strlen(piece));
    }
}

/* One edit. long: one case an edit. */
static void
edit(buffer *b, const seeds *all)
{
    static buffer copy;
    size_t n, m, at, other;
    char byte = (char)next_random();
    switch (pick(15)) {
    case 0:
        replace(b, pick(b->len), 1, &byte, 1);
        break;
    case 1:
        replace(b, pick(b->len), 0, &byte, 1);
        break;
    case 2:
        if (b->len > 0) {
            b->bytes[pick(b->len)] ^= (char)(1 << pick(8));
        }
        break;
    case 3:
        replace(b, pick(b->len), 1 + pick(8), "", 0);
        break;
    case 4:
        at = pick_line(b, &n);
        replace(b, at, n, "", 0);
        break;
    case 5:
        at = pick_line(b, &n);
        memcpy(copy.bytes, b->bytes + at, n);
        replace(b, at, 0, copy.bytes, n);
        break;
    case 6:
        at = pick_line(b, &n);
        memcpy(copy.bytes, b->bytes + at, n);
        replace(b, at, n, "", 0);
        other = pick_line(b, &m);
        replace(b, other, 0, copy.bytes, n);
        break;
    case 7:
    case 8:
        at = pick_token(b, &n);
        memcpy(copy.bytes, b->bytes + at, n);
        other = pick_token(b, &m);
        replace(b, other, m, copy.bytes, n);
        break;
    case 9:
        at = pick_token(b, &n);
        replace(b, at, n, "", 0);
        break;
    case 10:
    case 11:
        at = pick_token(b, &n);
        other = pick(N_WORDS);
        replace(b, at, pick(2) == 0 ? n : 0, words[other], strlen(words[other]));
        break;
    case 12: {
        const buffer *with = &all->items[pick(all->n)];
        at = pick_line(with, &n);
        other = pick_line(b, &m);
        replace(b, other, 0, with->bytes + at, n);
        break;
    }
    case 13:
        if (pick(4) == 0) {
            b->len = pick(b->len);
        } else {
            const buffer *with = &all->items[pick(all->n)];
            at = pick_line(with, &n);
            other = pick_line(b, &m);
            b->len = other;
            replace(b, b->len, 0, with->bytes + at, with->len - at);
        }
        break;
    default:
        if (pick(8) == 0) {
            nest(b);
        }
        break;
    }
}

/* --- one program --- */

static long long live_bytes;

static void *
counting_alloc(size_t n, void *user)
{
    void *p = malloc(n);
    (void)user;
    live_bytes += p != NULL ? (long long)n : 0;
    return p;
}

static void
counting_release(void *p, size_t n, void *user)
{
    (void)user;
    live_bytes -= p != NULL ? (long long)n : 0;
    free(p);
}

static void
save(void)
{
    FILE *f = fopen(failure_name, "wb");
    if (f != NULL) {
        fwrite(current.bytes, 1, current.len, f);
        fclose(f);
    }
}

static void
on_signal(int number)
{
    static const char text[] = "mutate: the compiler crashed or did not end; the program is in ";
    char line[64];
    int n = snprintf(line, sizeof line, "\nsignal %d at iteration %lu\n", number, iteration);
    save();
    if (write(2, text, sizeof text - 1) < 0 || write(2, failure_name, strlen(failure_name)) < 0 || write(2, line, (size_t)n) < 0) {
        _exit(3);
    }
    _exit(1);
}

static void
set_timer(long seconds)
{
    struct itimerval t;
    memset(&t, 0, sizeof t);
    t.it_value.tv_sec = seconds;
    setitimer(ITIMER_VIRTUAL, &t, NULL);
}

/* Compiles `current`; false when memory stays behind. */
static int
compile_current(long seconds)
{
    neuro_compile_desc desc;
    neuro_compilation *c;
    size_t len;
    memset(&desc, 0, sizeof desc);
    desc.name = "mutant.nr";
    desc.text = current.bytes;
    desc.text_len = current.len;
    desc.optimise = (int)(iteration % 3);
    desc.memory_limit = (size_t)256 << 20;
    desc.allocator.alloc = counting_alloc;
    desc.allocator.release = counting_release;
    current.bytes[current.len] = '\0';
    set_timer(seconds);
    neuro_compile(&desc, &c);
    if (c != NULL) {
        for (int i = 0; i < neuro_diagnostic_count(c); i++) {
            neuro_diagnostic_text(c, i, (neuro_render)(iteration % 3), &len);
        }
        neuro_c_text(c, &len);
        neuro_header_text(c, &len);
        neuro_compilation_free(c);
    }
    set_timer(0);
    return live_bytes == 0;
}

static void
read_seed(seeds *all, const char *path)
{
    FILE *f = fopen(path, "rb");
    buffer *b;
    if (f == NULL) {
        fprintf(stderr, "mutate: cannot read %s\n", path);
        exit(2);
    }
    all->items = (buffer *)realloc(all->items, (all->n + 1) * sizeof *all->items);
    if (all->items == NULL) {
        abort();
    }
    b = &all->items[all->n];
    b->len = fread(b->bytes, 1, MOST_TEXT, f);
    all->n += 1;
    fclose(f);
}

static void
catch_signals(void)
{
    static char stack[1 << 16];
    static const int numbers[] = { SIGSEGV, SIGBUS, SIGABRT, SIGFPE, SIGILL, SIGVTALRM };
    struct sigaction action;
    stack_t alternate;
    memset(&alternate, 0, sizeof alternate);
    alternate.ss_sp = stack;
    alternate.ss_size = sizeof stack;
    sigaltstack(&alternate, NULL);
    memset(&action, 0, sizeof action);
    action.sa_handler = on_signal;
    action.sa_flags = SA_ONSTACK;
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        sigaction(numbers[i], &action, NULL);
    }
}

int
main(int argc, char **argv)
{
    unsigned long count = 10000;
    long seconds = 1;
    seeds all = { NULL, 0 };
    for (int i = 1; i < argc; i++) {
        if (argv[i][0] == '-' && argv[i][1] != '\0' && i + 1 < argc) {
            char option = argv[i][1];
            const char *value = argv[++i];
            count = option == 'n' ? strtoul(value, NULL, 10) : count;
            state = option == 's' ? strtoull(value, NULL, 10) * 2 + 1 : state;
            seconds = option == 't' ? strtol(value, NULL, 10) : seconds;
            failure_name = option == 'o' ? value : failure_name;
        } else {
            read_seed(&all, argv[i]);
        }
    }
    if (all.n == 0) {
        fprintf(stderr, "mutate: no seed files\n");
        return 2;
    }
    catch_signals();
    for (iteration = 0; iteration < count; iteration++) {
        memcpy(&current, &all.items[pick(all.n)], sizeof current);
        for (size_t edits = iteration < all.n ? 0 : 1 + pick(1 + pick(6)); edits > 0; edits--) {
            edit(&current, &all);
        }
        if (!compile_current(seconds)) {
            save();
            printf("mutate: memory stays behind at iteration %lu; the program is in %s\n0 passed, 1 failed\n", iteration, failure_name);
            return 1;
        }
    }
    free(all.items);
    printf("%lu mutated programs compiled\n1 passed, 0 failed\n", count);
    return 0;
}
