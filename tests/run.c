/* The test runner: run [OPTION...] PATH...
 *
 *   *.nr        a program with its expectations in comments (the table below)
 *   *.c *.cc    a C or C++ program: compiled, run; `//=` lines are its output; a last line "N passed, N failed" is counted
 *   *.sh        a script: its last line "N passed, N failed" is counted
 *   *.md        a document: its fenced blocks are run in order (see `documents` below)
 *   directory   all of these in it, except in folders called `modules`, `fuzz` and `bench`
 *
 *   --neuro PATH    the driver (./neuro)            --cc COMMAND    the C compiler (cc)      --cxx COMMAND   for *.cc (c++)
 *   --cflags FLAGS  further flags for *.c and *.cc  --with OPTIONS  further options of `neuro run`
 *   --emit COMMAND  also puts the emitted C of each program through a command that must be silent
 *   -j N            so many at a time (2)           -v              names every test
 *
 * Expectations of a program:
 *   //~ ERROR a && b   at a line's end: `neuro check` reports an error on it whose text has both parts; //~^ the line above
 *   //~ WARN a && b    likewise a warning
 *   //= text           the next line of output        //! exit N    the exit status
 *   //! panic a && b   aborts with these texts        //! args A    further options of `neuro run`
 * With ERROR lines exactly these errors are reported; without, there are none, and a program with a main() is run.
 *
 * The last line is "N passed, N failed", with ", N skipped" where a tool is missing. Exit status 1 when a test failed.
 */
#define _XOPEN_SOURCE 700
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { LIMIT_S = 120, LIMIT_BYTES = 64 << 20, TIMED_OUT = -1000 };

/* --- text --- */

typedef struct text {
    char *data;
    size_t len;
    size_t cap;
} text;

static void
put(text *t, const char *bytes, size_t n)
{
    if (t->len + n + 1 > t->cap) {
        t->cap = (t->len + n + 1) * 2;
        t->data = (char *)realloc(t->data, t->cap);
        if (t->data == NULL) {
            abort();
        }
    }
    memcpy(t->data + t->len, bytes, n);
    t->len += n;
    t->data[t->len] = '\0';
}

static void
putf(text *t, const char *format, ...)
{
    char line[4096];
    va_list args;
    va_start(args, format);
    vsnprintf(line, sizeof line, format, args);
    va_end(args);
    put(t, line, strlen(line));
}

static text
empty(void)
{
    text t = { NULL, 0, 0 };
    put(&t, "", 0);
    return t;
}

static char *
copy(const char *s, size_t n)
{
    text t = empty();
    put(&t, s, n);
    return t.data;
}

static char *
join(const char *a, const char *b, const char *c)
{
    text t = empty();
    put(&t, a, strlen(a));
    put(&t, b, strlen(b));
    put(&t, c, strlen(c));
    return t.data;
}

typedef struct list {
    char **items;
    int n;
} list;

static void
add(list *l, char *s)
{
    l->items = (char **)realloc(l->items, (size_t)(l->n + 2) * sizeof *l->items);
    if (l->items == NULL) {
        abort();
    }
    l->items[l->n] = s;
    l->n += 1;
    l->items[l->n] = NULL;
}

static void
add_words(list *l, const char *s)
{
    while (*s != '\0') {
        size_t n = strcspn(s, " \t");
        if (n > 0) {
            add(l, copy(s, n));
        }
        s += n + strspn(s + n, " \t");
    }
}

/* The lines of a text, as Python's splitlines gives them for \n and \r\n. */
static list
lines_of(const char *s)
{
    list l = { NULL, 0 };
    while (*s != '\0') {
        size_t n = strcspn(s, "\n");
        size_t len = n > 0 && s[n - 1] == '\r' ? n - 1 : n;
        add(&l, copy(s, len));
        s += n + (s[n] == '\n');
    }
    return l;
}

/* Whether s contains part, letter case aside. */
static bool
contains(const char *s, const char *part)
{
    size_t n = strlen(part);
    for (;; s++) {
        size_t i = 0;
        while (i < n && s[i] != '\0' && tolower((unsigned char)s[i]) == tolower((unsigned char)part[i])) {
            i++;
        }
        if (i == n) {
            return true;
        }
        if (*s == '\0') {
            return false;
        }
    }
}

static bool
ends_with(const char *s, const char *end)
{
    size_t n = strlen(s), m = strlen(end);
    return n >= m && strcmp(s + n - m, end) == 0;
}

static char *
trimmed(const char *s, size_t n)
{
    while (n > 0 && isspace((unsigned char)s[0])) {
        s++;
        n--;
    }
    while (n > 0 && isspace((unsigned char)s[n - 1])) {
        n--;
    }
    return copy(s, n);
}

/* The parts of "a && b". */
static list
parts_of(const char *s)
{
    list l = { NULL, 0 };
    for (;;) {
        const char *end = strstr(s, "&&");
        char *part = trimmed(s, end != NULL ? (size_t)(end - s) : strlen(s));
        if (part[0] != '\0') {
            add(&l, part);
        }
        if (end == NULL) {
            return l;
        }
        s = end + 2;
    }
}

static text
read_file(const char *path)
{
    text t = empty();
    char block[65536];
    FILE *f = fopen(path, "rb");
    size_t n;
    while (f != NULL && (n = fread(block, 1, sizeof block, f)) > 0) {
        put(&t, block, n);
    }
    if (f != NULL) {
        fclose(f);
    }
    return t;
}

static void
write_file(const char *path, const char *s, size_t n)
{
    FILE *f = fopen(path, "wb");
    if (f == NULL || fwrite(s, 1, n, f) != n || fclose(f) != 0) {
        fprintf(stderr, "run: cannot write %s: %s\n", path, strerror(errno));
        exit(2);
    }
}

/* --- processes --- */

static double
seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* In the child: standard input empty, the two outputs in pipes, a process group of its own. */
static void
start(char **argv, const char *directory, int out, int err)
{
    int null = open("/dev/null", O_RDONLY);
    setpgid(0, 0);
    dup2(null, 0);
    dup2(out, 1);
    dup2(err, 2);
    for (int fd = 3; fd < 64; fd++) {
        close(fd);
    }
    if (directory != NULL && chdir(directory) != 0) {
        _exit(126);
    }
    execvp(argv[0], argv);
    fprintf(stderr, "cannot start %s: %s\n", argv[0], strerror(errno));
    _exit(127);
}

/* Takes what is in the pipe; false at its end. */
static bool
drain(int fd, text *t)
{
    char block[65536];
    ssize_t n = read(fd, block, sizeof block);
    if (n > 0) {
        put(t, block, (size_t)n);
    }
    return n > 0 || (n < 0 && errno == EINTR);
}

/* Runs a command to its end: exit status, minus the signal, or TIMED_OUT. `err` may be `out`. */
static int
run(const list *command, const char *directory, text *out, text *err)
{
    int a[2], b[2], status = 0;
    double end = seconds() + LIMIT_S;
    struct pollfd fds[2];
    pid_t child;
    int left = 2;
    *out = empty();
    *err = err == out ? *out : empty();
    fflush(stdout);
    if (pipe(a) != 0 || pipe(b) != 0 || (child = fork()) < 0) {
        perror("run");
        exit(2);
    }
    if (child == 0) {
        start(command->items, directory, a[1], err == out ? a[1] : b[1]);
    }
    close(a[1]);
    close(b[1]);
    fds[0].fd = a[0];
    fds[1].fd = b[0];
    fds[0].events = fds[1].events = POLLIN;
    while (left > 0 && seconds() < end && out->len + err->len < LIMIT_BYTES) {
        if (poll(fds, 2, 200) <= 0) {
            continue;
        }
        for (int i = 0; i < 2; i++) {
            if (fds[i].fd >= 0 && fds[i].revents != 0 && !drain(fds[i].fd, i == 0 ? out : err)) {
                fds[i].fd = -1;
                left -= 1;
            }
        }
    }
    close(a[0]);
    close(b[0]);
    if (left > 0) {
        kill(-child, SIGKILL);
    }
    while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
    if (left > 0) {
        return TIMED_OUT;
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

static bool
there_is(const char *command)
{
    list l = { NULL, 0 };
    text out, err;
    add_words(&l, command);
    add(&l, copy("--version", 9));
    return run(&l, NULL, &out, &err) == 0;
}

/* --- options and results --- */

typedef struct settings {
    const char *neuro;
    const char *cc;
    const char *cxx;
    const char *cflags;
    const char *with;
    const char *emit;
    int jobs;
    bool verbose;
} settings;

/* What a job found. Faults are lines of `report`. */
typedef struct result {
    int passed;
    int failed;
    int skipped;
    text report;
} result;

static void
fault(text *faults, const char *format, ...)
{
    char line[2000];
    va_list args;
    va_start(args, format);
    vsnprintf(line, sizeof line, format, args);
    va_end(args);
    putf(faults, "     %s\n", line);
}

/* Counts one test by whether it has faults. */
static void
settle(result *r, const char *name, const text *faults)
{
    if (faults->len == 0) {
        r->passed += 1;
        return;
    }
    r->failed += 1;
    putf(&r->report, "FAIL %s\n", name);
    put(&r->report, faults->data, faults->len);
}

/* Outputs side by side; a wanted line "..." stands for any lines when dots are allowed. */
static bool
same_lines(char **want, int n_want, char **got, int n_got, bool dots)
{
    if (n_want == 0) {
        return n_got == 0;
    }
    if (dots && strcmp(want[0], "...") == 0) {
        for (int i = 0; i <= n_got; i++) {
            if (same_lines(want + 1, n_want - 1, got + i, n_got - i, dots)) {
                return true;
            }
        }
        return false;
    }
    return n_got > 0 && strcmp(want[0], got[0]) == 0 && same_lines(want + 1, n_want - 1, got + 1, n_got - 1, dots);
}

static void
compare_output(text *faults, const list *want, const list *got, bool dots)
{
    if (same_lines(want->items, want->n, got->items, got->n, dots)) {
        return;
    }
    for (int i = 0; i < want->n || i < got->n; i++) {
        const char *w = i < want->n ? want->items[i] : NULL;
        const char *g = i < got->n ? got->items[i] : NULL;
        if (w == NULL || g == NULL || (strcmp(w, g) != 0 && !(dots && strcmp(w, "...") == 0))) {
            fault(faults, "output line %d: wanted %s%s%s, got %s%s%s", i + 1, w ? "\"" : "", w ? w : "nothing more", w ? "\"" : "",
                  g ? "\"" : "", g ? g : "nothing more", g ? "\"" : "");
            return;
        }
    }
}

/* --- JSON: just enough for the diagnostics --- */

typedef struct diagnostic {
    char severity[16];
    long line;
    text report;                /* message, labels, notes, helps */
    bool used;
} diagnostic;

static const char *
json_space(const char *p)
{
    while (*p == ' ' || *p == '\t' || *p == '\n' || *p == '\r') {
        p++;
    }
    return p;
}

static void
json_utf8(text *out, unsigned long c)
{
    char b[4];
    if (c < 0x80) {
        b[0] = (char)c;
        put(out, b, 1);
    } else if (c < 0x800) {
        b[0] = (char)(0xc0 | c >> 6);
        b[1] = (char)(0x80 | (c & 0x3f));
        put(out, b, 2);
    } else {
        b[0] = (char)(0xe0 | c >> 12);
        b[1] = (char)(0x80 | (c >> 6 & 0x3f));
        b[2] = (char)(0x80 | (c & 0x3f));
        put(out, b, 3);
    }
}

/* After the opening quote; NULL when malformed. */
static const char *
json_string(const char *p, text *out)
{
    while (*p != '"') {
        if (*p == '\0' || (unsigned char)*p < 0x20) {
            return NULL;
        }
        if (*p != '\\') {
            put(out, p, 1);
            p++;
            continue;
        }
        p++;
        if (*p == 'u') {
            char hex[5] = { 0 };
            char *end;
            strncpy(hex, p + 1, 4);
            json_utf8(out, strtoul(hex, &end, 16));
            if (end != hex + 4) {
                return NULL;
            }
            p += 5;
            continue;
        }
        {
            static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
            const char *at = *p != '\0' ? strchr(from, *p) : NULL;
            if (at == NULL) {
                return NULL;
            }
            put(out, &to[at - from], 1);
            p++;
        }
    }
    return p + 1;
}

/* A value under the key `key`; what belongs to the report is added to it. NULL when malformed. */
static const char *
json_value(const char *p, const char *key, int depth, diagnostic *d)
{
    p = json_space(p);
    if (depth > 8) {
        return NULL;
    }
    if (*p == '"') {
        text s = empty();
        p = json_string(p + 1, &s);
        if (depth == 1 && strcmp(key, "severity") == 0) {
            snprintf(d->severity, sizeof d->severity, "%s", s.data);
        } else if (strcmp(key, "message") == 0 || strcmp(key, "notes") == 0 || strcmp(key, "helps") == 0) {
            put(&d->report, d->report.len > 0 ? " \n " : "", d->report.len > 0 ? 3 : 0);
            put(&d->report, s.data, s.len);
        }
        return p;
    }
    if (*p == '{' || *p == '[') {
        char close_with = *p == '{' ? '}' : ']';
        bool object = *p == '{';
        p = json_space(p + 1);
        if (*p == close_with) {
            return p + 1;
        }
        for (;;) {
            text name = empty();
            if (object) {
                p = json_space(p);
                p = *p == '"' ? json_string(p + 1, &name) : NULL;
                p = p != NULL ? json_space(p) : NULL;
                if (p == NULL || *p != ':') {
                    return NULL;
                }
                p++;
            }
            p = json_value(p, object ? name.data : key, depth + 1, d);
            p = p != NULL ? json_space(p) : NULL;
            if (p == NULL || (*p != ',' && *p != close_with)) {
                return NULL;
            }
            p++;
            if (p[-1] == close_with) {
                return p;
            }
        }
    }
    {
        char *end;
        long n = strtol(p, &end, 10);
        if (end == p) {
            size_t word = strspn(p, "abcdefghijklmnopqrstuvwxyz");
            return word > 0 ? p + word : NULL;
        }
        if (depth == 1 && strcmp(key, "line") == 0) {
            d->line = n;
        }
        return end;
    }
}

/* --- programs --- */

typedef struct expected {
    bool warning;
    int line;
    list parts;
} expected;

typedef struct expectations {
    expected *diagnostics;
    int n_diagnostics;
    int n_errors;
    list out;
    int exit_status;
    bool panics;
    list panic;
    list args;
    bool has_main;
} expectations;

/* `//~^ ERROR text` in a line. */
static void
expect_diagnostic(expectations *want, const char *line, int number)
{
    for (const char *p = strstr(line, "//~"); p != NULL; p = strstr(p + 1, "//~")) {
        size_t up = strspn(p + 3, "^");
        const char *word = p + 3 + up;
        expected *e;
        word += strspn(word, " \t");
        if (strncmp(word, "ERROR", 5) != 0 && strncmp(word, "WARN", 4) != 0) {
            continue;
        }
        want->diagnostics = (expected *)realloc(want->diagnostics, (size_t)(want->n_diagnostics + 1) * sizeof *e);
        if (want->diagnostics == NULL) {
            abort();
        }
        e = &want->diagnostics[want->n_diagnostics];
        want->n_diagnostics += 1;
        e->warning = word[0] == 'W';
        e->line = number - (int)up;
        e->parts = parts_of(word + (e->warning ? 4 : 5));
        want->n_errors += !e->warning;
        return;
    }
}

/* `//! exit 1` and the like at the start of a line. */
static void
expect_directive(expectations *want, const char *line)
{
    char *rest;
    line += strspn(line, " \t");
    if (strncmp(line, "//= ", 4) == 0 || strcmp(line, "//=") == 0 || strncmp(line, "//=", 3) == 0) {
        size_t n = strlen(line);
        size_t from = line[3] == ' ' ? 4 : 3;
        while (n > from && isspace((unsigned char)line[n - 1])) {
            n--;
        }
        add(&want->out, copy(line + from, n - from));
    }
    if (strncmp(line, "//! ", 4) != 0) {
        return;
    }
    line += 4;
    rest = trimmed(line + strcspn(line, " \t"), strlen(line + strcspn(line, " \t")));
    if (strncmp(line, "exit ", 5) == 0) {
        want->exit_status = atoi(rest);
    } else if (strncmp(line, "panic ", 6) == 0) {
        want->panics = true;
        want->panic = parts_of(rest);
    } else if (strncmp(line, "args ", 5) == 0) {
        add_words(&want->args, rest);
    }
}

static bool
begins_main(const char *line)
{
    line += strspn(line, " \t");
    if (strncmp(line, "pub ", 4) == 0 || strncmp(line, "export ", 7) == 0) {
        line += strcspn(line, " ");
        line += strspn(line, " \t");
    }
    if (strncmp(line, "func", 4) != 0 || (line[4] != ' ' && line[4] != '\t')) {
        return false;
    }
    line += 4 + strspn(line + 4, " \t");
    return strncmp(line, "main", 4) == 0 && !isalnum((unsigned char)line[4]) && line[4] != '_';
}

static expectations
read_expectations(const char *path)
{
    expectations want;
    text source = read_file(path);
    list lines = lines_of(source.data);
    memset(&want, 0, sizeof want);
    for (int i = 0; i < lines.n; i++) {
        expect_diagnostic(&want, lines.items[i], i + 1);
        expect_directive(&want, lines.items[i]);
        want.has_main = want.has_main || begins_main(lines.items[i]);
    }
    return want;
}

/* The JSON lines of an output. */
static diagnostic *
read_diagnostics(const char *out, int *n, text *faults)
{
    diagnostic *all = NULL;
    list lines = lines_of(out);
    for (int i = 0; i < lines.n; i++) {
        diagnostic d;
        const char *end;
        memset(&d, 0, sizeof d);
        d.report = empty();
        if (lines.items[i][0] != '{') {
            continue;
        }
        end = json_value(lines.items[i], "", 0, &d);
        if (end == NULL || *json_space(end) != '\0') {
            fault(faults, "not JSON: %.120s", lines.items[i]);
            continue;
        }
        all = (diagnostic *)realloc(all, (size_t)(*n + 1) * sizeof *all);
        if (all == NULL) {
            abort();
        }
        all[*n] = d;
        *n += 1;
    }
    return all;
}

static bool
fits(const diagnostic *d, const expected *e)
{
    if (d->used || d->line != e->line || strcmp(d->severity, e->warning ? "warning" : "error") != 0) {
        return false;
    }
    for (int i = 0; i < e->parts.n; i++) {
        if (!contains(d->report.data, e->parts.items[i])) {
            return false;
        }
    }
    return true;
}

static void
match_diagnostics(text *faults, const expectations *want, diagnostic *got, int n)
{
    for (int i = 0; i < want->n_diagnostics; i++) {
        const expected *e = &want->diagnostics[i];
        bool hit = false;
        for (int k = 0; k < n && !hit; k++) {
            hit = fits(&got[k], e);
            got[k].used = got[k].used || hit;
        }
        if (!hit) {
            text wanted = empty();
            for (int k = 0; k < e->parts.n; k++) {
                putf(&wanted, "%s%s", k > 0 ? " && " : "", e->parts.items[k]);
            }
            fault(faults, "line %d: wanted %s with %s", e->line, e->warning ? "a warning" : "an error", wanted.data);
            for (int k = 0; k < n; k++) {
                if (got[k].line == e->line) {
                    fault(faults, "    there: %s: %.300s", got[k].severity, got[k].report.data);
                }
            }
        }
    }
    for (int k = 0; k < n; k++) {
        if (!got[k].used && strcmp(got[k].severity, "error") == 0) {
            fault(faults, "line %ld: unexpected error: %.300s", got[k].line, got[k].report.data);
        }
    }
}

/* `neuro check` against the expectations; false when the program is not to be run. */
static bool
check_program(const settings *s, const char *path, const expectations *want, text *faults)
{
    list command = { NULL, 0 };
    text out, err;
    diagnostic *got;
    int n = 0, status;
    add_words(&command, s->neuro);
    add_words(&command, "check --json");
    add(&command, copy(path, strlen(path)));
    status = run(&command, NULL, &out, &err);
    if (status != 0 && status != 1) {
        fault(faults, "check ended with status %d: %.300s", status, err.data);
        return false;
    }
    put(&out, "\n", 1);
    put(&out, err.data, err.len);
    got = read_diagnostics(out.data, &n, faults);
    match_diagnostics(faults, want, got, n);
    if (faults->len == 0 && want->n_errors == 0 && status != 0) {
        fault(faults, "check ended with status 1 and no error");
    }
    return want->n_errors == 0 && faults->len == 0;
}

static void
run_program(const settings *s, const char *path, const expectations *want, text *faults)
{
    list command = { NULL, 0 };
    text out, err;
    int status;
    add_words(&command, s->neuro);
    add_words(&command, "run");
    bool own_tier = want->args.n > 0 && s->with != NULL && strstr(s->with, "-O") != NULL;
    if (s->with != NULL && !own_tier) {     /* a program that pins a tier is run on that one */
        add_words(&command, s->with);
    }
    for (int i = 0; i < want->args.n; i++) {
        add(&command, want->args.items[i]);
    }
    add(&command, copy(path, strlen(path)));
    status = run(&command, NULL, &out, &err);
    if (want->out.n > 0) {
        list got = lines_of(out.data);
        compare_output(faults, &want->out, &got, false);
    }
    if (status == TIMED_OUT) {
        fault(faults, "no end within %d s, or of its output", LIMIT_S);
    } else if (want->panics) {
        if (status == 0) {
            fault(faults, "wanted a panic, exit status 0");
        }
        for (int i = 0; i < want->panic.n; i++) {
            if (!contains(err.data, want->panic.items[i])) {
                fault(faults, "panic text lacks '%s': %.200s", want->panic.items[i], err.data);
            }
        }
    } else if (status != want->exit_status) {
        fault(faults, "exit status %d, wanted %d: %.300s", status, want->exit_status, err.data);
    }
}

/* The emitted C through a compiler that must not say a word. */
static void
check_emitted(const settings *s, const char *path, text *faults)
{
    list emit = { NULL, 0 }, compile = { NULL, 0 };
    text out, err;
    char name[64];
    snprintf(name, sizeof name, "/tmp/neuro-emitted-%ld.c", (long)getpid());
    add_words(&emit, s->neuro);
    add_words(&emit, "emit -o");
    add(&emit, copy(name, strlen(name)));
    if (s->with != NULL) {
        add_words(&emit, s->with);
    }
    add(&emit, copy(path, strlen(path)));
    add_words(&compile, s->emit);
    add(&compile, copy(name, strlen(name)));
    if (run(&emit, NULL, &out, &err) != 0) {
        fault(faults, "emit failed: %.300s", err.data);
    } else if (run(&compile, NULL, &out, &err) != 0 || out.len + err.len > 0) {
        fault(faults, "the C compiler on the emitted C: %.1000s%.300s", err.data, out.data);
    }
    unlink(name);
}

static void
test_program(const settings *s, const char *path, result *r)
{
    text faults = empty();
    expectations want = read_expectations(path);
    if (check_program(s, path, &want, &faults)) {
        if (s->emit != NULL) {
            check_emitted(s, path, &faults);
        } else if (want.has_main) {
            run_program(s, path, &want, &faults);
        }
    }
    settle(r, path, &faults);
}

/* --- C programs and scripts --- */

/* "N passed, N failed[, N skipped]" as the last line of an output. */
static bool
count_line(const char *out, result *r)
{
    list lines = lines_of(out);
    int passed, failed, skipped = 0;
    if (lines.n == 0 || sscanf(lines.items[lines.n - 1], "%d passed, %d failed, %d skipped", &passed, &failed, &skipped) < 2) {
        return false;
    }
    r->passed += passed;
    r->failed += failed;
    r->skipped += skipped;
    return true;
}

/* A finished test process: counts what it says, or itself. */
static void
judge(const char *path, int status, const text *out, const text *err, result *r)
{
    text faults = empty();
    expectations want = read_expectations(path);
    int failed = r->failed;
    if (want.out.n == 0 && count_line(out->data, r)) {
        if (r->failed > failed || status != 0 || err->len > 0) {
            r->failed += r->failed == failed && status != 0;
            putf(&r->report, "FAIL %s (status %d)\n%s%s", path, status, out->data, err->data);
        }
        return;
    }
    if (want.out.n > 0) {
        list got = lines_of(out->data);
        compare_output(&faults, &want.out, &got, false);
    }
    if (status != want.exit_status) {
        fault(&faults, "exit status %d, wanted %d: %.1000s%.1000s", status, want.exit_status, err->data, out->data);
    }
    settle(r, path, &faults);
}

static void
test_c(const settings *s, const char *path, result *r)
{
    bool cxx = ends_with(path, ".cc");
    list compile = { NULL, 0 }, command = { NULL, 0 };
    text out, err;
    char name[64];
    int status;
    snprintf(name, sizeof name, "/tmp/neuro-test-%ld", (long)getpid());
    if (cxx && !there_is(s->cxx)) {
        r->skipped += 1;
        putf(&r->report, "skipped %s: no C++ compiler '%s'\n", path, s->cxx);
        return;
    }
    add_words(&compile, cxx ? s->cxx : s->cc);
    add_words(&compile, cxx ? "-std=c++17 -g -I. -Itests/unit" : "-std=c11 -g -I. -Itests/unit");
    add_words(&compile, s->cflags);
    add(&compile, copy(path, strlen(path)));
    add_words(&compile, "-o");
    add(&compile, copy(name, strlen(name)));
    add_words(&compile, "-lm");
    status = run(&compile, NULL, &out, &err);
    if (status != 0) {
        r->failed += 1;
        putf(&r->report, "FAIL %s: does not compile\n%.3000s", path, err.data);
        return;
    }
    add(&command, copy(name, strlen(name)));
    status = run(&command, NULL, &out, &err);
    unlink(name);
    judge(path, status, &out, &err, r);
}

static void
test_script(const settings *s, const char *path, result *r)
{
    list command = { NULL, 0 };
    text out, err;
    int status;
    setenv("NEURO", s->neuro, 1);
    setenv("CC", s->cc, 1);
    add_words(&command, "sh");
    add(&command, copy(path, strlen(path)));
    unsetenv("MAKEFLAGS");
    status = run(&command, NULL, &out, &err);
    judge(path, status, &out, &err, r);
}

/* --- documents --- */
/* The fenced blocks of a Markdown file run in order in one directory that links to everything of the project:
 *   ```neuro [NAME]   is stored, checked and, with a main(), run         ```c [NAME]   is compiled and, with a main(), run
 *   ```sh             is run; `make` lines only as `make -n`             ```output     what the block before it prints
 * A block without an output block must succeed. A line `...` of an output stands for any lines. */

typedef struct block {
    char *language;
    char *name;
    text body;
    int line;
} block;

typedef struct document {
    const settings *s;
    const char *path;
    char *sandbox;
    result *r;
} document;

static block *
read_blocks(const char *path, int *n)
{
    text source = read_file(path);
    list lines = lines_of(source.data);
    block *all = NULL;
    bool inside = false;
    for (int i = 0; i < lines.n; i++) {
        const char *line = lines.items[i];
        if (strncmp(line, "```", 3) == 0 && !inside) {
            list words = { NULL, 0 };
            add_words(&words, line + 3);
            all = (block *)realloc(all, (size_t)(*n + 1) * sizeof *all);
            if (all == NULL) {
                abort();
            }
            all[*n].language = words.n > 0 ? words.items[0] : copy("", 0);
            all[*n].name = words.n > 1 ? words.items[1] : NULL;
            all[*n].body = empty();
            all[*n].line = i + 1;
            *n += 1;
            inside = true;
        } else if (strncmp(line, "```", 3) == 0) {
            inside = false;
        } else if (inside) {
            put(&all[*n - 1].body, line, strlen(line));
            put(&all[*n - 1].body, "\n", 1);
        }
    }
    return all;
}

static void
remove_tree(const char *path)
{
    struct stat st;
    DIR *d;
    if (lstat(path, &st) != 0) {
        return;
    }
    d = S_ISDIR(st.st_mode) ? opendir(path) : NULL;
    if (d != NULL) {
        for (struct dirent *e = readdir(d); e != NULL; e = readdir(d)) {
            if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0) {
                remove_tree(join(path, "/", e->d_name));
            }
        }
        closedir(d);
        rmdir(path);
        return;
    }
    unlink(path);
}

/* A directory with links to all that the project has. */
static char *
make_sandbox(void)
{
    char *path = copy("/tmp/neuro-doc-XXXXXX", 21);
    char here[4096];
    DIR *d = opendir(".");
    if (mkdtemp(path) == NULL || getcwd(here, sizeof here) == NULL || d == NULL) {
        perror("run");
        exit(2);
    }
    for (struct dirent *e = readdir(d); e != NULL; e = readdir(d)) {
        if (e->d_name[0] != '.' && symlink(join(here, "/", e->d_name), join(path, "/", e->d_name)) != 0) {
            perror("run");
            exit(2);
        }
    }
    closedir(d);
    return path;
}

/* The commands, each `make` only shown. */
static char *
harmless(const char *script)
{
    list lines = lines_of(script);
    text t = empty();
    for (int i = 0; i < lines.n; i++) {
        bool make = strncmp(lines.items[i], "make", 4) == 0 && (lines.items[i][4] == ' ' || lines.items[i][4] == '\0');
        putf(&t, make ? "make -n%s > /dev/null\n" : "%s\n", make ? lines.items[i] + 4 : lines.items[i]);
    }
    return t.data;
}

/* Runs one command of a block in the sandbox; both outputs go to `out`. */
static int
run_in(const document *d, const char *first, const char *second, text *out)
{
    list command = { NULL, 0 };
    add_words(&command, first);
    add(&command, copy(second, strlen(second)));
    return run(&command, d->sandbox, out, out);
}

static bool
has_line(const text *body, bool (*is)(const char *line))
{
    list lines = lines_of(body->data);
    for (int i = 0; i < lines.n; i++) {
        if (is(lines.items[i])) {
            return true;
        }
    }
    return false;
}

static bool
begins_c_main(const char *line)
{
    return strncmp(line, "int main(", 9) == 0 || strncmp(line, "main(", 5) == 0;
}

static int
run_neuro_block(const document *d, const block *b, const char *name, text *out)
{
    int status = run_in(d, "./neuro check", name, out);
    if (status == 0 && has_line(&b->body, begins_main)) {
        status = run_in(d, "./neuro run", name, out);
    }
    return status;
}

static int
run_c_block(const document *d, const block *b, const char *name, text *out)
{
    bool whole = has_line(&b->body, begins_c_main);
    list command = { NULL, 0 };
    int status;
    add_words(&command, d->s->cc);
    add_words(&command, whole ? "-std=c11 -I. -o block.out" : "-std=c11 -I. -fsyntax-only");
    add_words(&command, d->s->cflags);
    add(&command, copy(name, strlen(name)));
    add_words(&command, "-lm");
    status = run(&command, d->sandbox, out, out);
    return status == 0 && whole ? run_in(d, "./block.out", "", out) : status;
}

static void
test_block(const document *d, const block *b, const block *next, int number)
{
    bool wanted = next != NULL && strcmp(next->language, "output") == 0;
    text faults = empty(), out = empty();
    char name[600];
    int status;
    snprintf(name, sizeof name, "block-%d.%s", number, strcmp(b->language, "c") == 0 ? "c" : "nr");
    if (b->name != NULL) {
        snprintf(name, sizeof name, "%s", b->name);
    }
    if (strcmp(b->language, "sh") == 0) {
        status = run_in(d, "sh -c", harmless(b->body.data), &out);
    } else {
        write_file(join(d->sandbox, "/", name), b->body.data, b->body.len);
        status = strcmp(b->language, "c") == 0 ? run_c_block(d, b, name, &out) : run_neuro_block(d, b, name, &out);
    }
    if (wanted) {
        list want = lines_of(next->body.data), got = lines_of(out.data);
        compare_output(&faults, &want, &got, true);
    } else if (status != 0) {
        fault(&faults, "status %d: %.1500s", status, out.data);
    }
    snprintf(name, sizeof name, "%s:%d (%s)", d->path, b->line, b->language);
    settle(d->r, name, &faults);
}

static void
test_document(const settings *s, const char *path, result *r)
{
    int n = 0;
    block *blocks = read_blocks(path, &n);
    document d = { s, path, NULL, r };
    unsetenv("MAKEFLAGS");
    d.sandbox = make_sandbox();
    for (int i = 0; i < n; i++) {
        const char *l = blocks[i].language;
        if (strcmp(l, "neuro") == 0 || strcmp(l, "c") == 0 || strcmp(l, "sh") == 0) {
            test_block(&d, &blocks[i], i + 1 < n ? &blocks[i + 1] : NULL, i + 1);
        }
    }
    remove_tree(d.sandbox);
}

/* --- all tests, several at a time --- */

typedef struct job {
    char *path;
    pid_t process;              /* 0: not started or collected */
    FILE *report;               /* what it found, written by the process */
    result r;
} job;

typedef struct jobs {
    job *items;
    int n;
} jobs;

static const struct { const char *ending; void (*test)(const settings *s, const char *path, result *r); } kinds[] = {
    { ".nr", test_program }, { ".c", test_c }, { ".cc", test_c }, { ".sh", test_script }, { ".md", test_document }
};
enum { N_KINDS = sizeof kinds / sizeof *kinds };

static int
kind_of(const char *path)
{
    for (int i = 0; i < N_KINDS; i++) {
        if (ends_with(path, kinds[i].ending)) {
            return i;
        }
    }
    return -1;
}

static int
by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* A file, or all in a directory in the order of their names. `given`: named on the command line. */
static void
collect(jobs *all, const char *path, bool given)
{
    struct stat st;
    if (stat(path, &st) != 0) {
        fprintf(stderr, "run: there is no '%s'\n", path);
        exit(2);
    }
    if (S_ISDIR(st.st_mode)) {
        const char *base = strrchr(path, '/') != NULL ? strrchr(path, '/') + 1 : path;
        list names = { NULL, 0 };
        DIR *d = opendir(path);
        if (!given && (strcmp(base, "modules") == 0 || strcmp(base, "fuzz") == 0 || strcmp(base, "bench") == 0)) {
            closedir(d);
            return;
        }
        for (struct dirent *e = d != NULL ? readdir(d) : NULL; e != NULL; e = readdir(d)) {
            if (e->d_name[0] != '.') {
                add(&names, join(path, ends_with(path, "/") ? "" : "/", e->d_name));
            }
        }
        if (d != NULL) {
            closedir(d);
        }
        qsort(names.items, (size_t)names.n, sizeof *names.items, by_name);
        for (int i = 0; i < names.n; i++) {
            collect(all, names.items[i], false);
        }
    } else if (kind_of(path) >= 0 && (given || !ends_with(path, ".md"))) {
        all->items = (job *)realloc(all->items, (size_t)(all->n + 1) * sizeof *all->items);
        if (all->items == NULL) {
            abort();
        }
        memset(&all->items[all->n], 0, sizeof *all->items);
        all->items[all->n].path = copy(path, strlen(path));
        all->n += 1;
    }
}

static void
start_job(const settings *s, job *j)
{
    j->report = tmpfile();
    fflush(stdout);
    j->process = j->report != NULL ? fork() : -1;
    if (j->process < 0) {
        perror("run");
        exit(2);
    }
    if (j->process == 0) {
        result r;
        memset(&r, 0, sizeof r);
        r.report = empty();
        kinds[kind_of(j->path)].test(s, j->path, &r);
        fprintf(j->report, "%d %d %d\n", r.passed, r.failed, r.skipped);
        fwrite(r.report.data, 1, r.report.len, j->report);
        fflush(j->report);
        _exit(0);
    }
}

/* Prints what a finished job found. */
static void
collect_job(const settings *s, job *j)
{
    char bytes[4096];
    size_t n;
    rewind(j->report);
    if (fscanf(j->report, "%d %d %d", &j->r.passed, &j->r.failed, &j->r.skipped) != 3) {
        j->r.failed = 1;
        printf("FAIL %s: the runner itself failed\n", j->path);
    }
    fgetc(j->report);
    if (s->verbose) {
        printf("%s %s\n", j->r.failed > 0 ? "FAIL" : "ok", j->path);
    }
    while ((n = fread(bytes, 1, sizeof bytes, j->report)) > 0) {
        fwrite(bytes, 1, n, stdout);
    }
    fflush(stdout);
    fclose(j->report);
    j->process = 0;
}

/* Runs them all, at most s->jobs at a time. */
static void
run_jobs(const settings *s, jobs *all)
{
    int started = 0, running = 0, status;
    while (started < all->n || running > 0) {
        if (started < all->n && running < s->jobs) {
            start_job(s, &all->items[started]);
            started += 1;
            running += 1;
            continue;
        }
        pid_t done = waitpid(-1, &status, 0);
        for (int i = 0; i < started && done > 0; i++) {
            if (all->items[i].process == done) {
                collect_job(s, &all->items[i]);
                running -= 1;
            }
        }
    }
}

int
main(int argc, char **argv)
{
    settings s = { "./neuro", "cc", "c++", "-O1", NULL, NULL, 2, false };
    const struct { const char *name; const char **value; } options[] = {
        { "--neuro", &s.neuro }, { "--cc", &s.cc }, { "--cxx", &s.cxx }, { "--cflags", &s.cflags }, { "--with", &s.with },
        { "--emit", &s.emit }
    };
    jobs all = { NULL, 0 };
    int passed = 0, failed = 0, skipped = 0;
    for (int i = 1; i < argc; i++) {
        bool taken = false;
        for (size_t k = 0; k < sizeof options / sizeof *options && !taken && i + 1 < argc; k++) {
            if (strcmp(argv[i], options[k].name) == 0) {
                *options[k].value = argv[++i];
                taken = true;
            }
        }
        if (!taken && strcmp(argv[i], "-j") == 0 && i + 1 < argc) {
            s.jobs = atoi(argv[++i]) > 0 ? atoi(argv[i]) : 1;
        } else if (!taken && strcmp(argv[i], "-v") == 0) {
            s.verbose = true;
        } else if (!taken) {
            collect(&all, argv[i], true);
        }
    }
    run_jobs(&s, &all);
    for (int i = 0; i < all.n; i++) {
        passed += all.items[i].r.passed;
        failed += all.items[i].r.failed;
        skipped += all.items[i].r.skipped;
    }
    printf("%d passed, %d failed", passed, failed);
    if (skipped > 0) {
        printf(", %d skipped", skipped);
    }
    printf("\n");
    return failed > 0 || all.n == 0 ? 1 : 0;
}
