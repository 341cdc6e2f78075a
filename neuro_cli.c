/* neuro_cli.c - the driver of Neuro: arguments, files, the C compiler, printing. The compiler itself is in neuro.h.
 *
 * What the tool does is in `neuro --help`; this file reads top to bottom:
 *
 *   base       text buffers, argument lists, words to the user
 *   files      reading, writing, private directories
 *   embedded   the text of neuro.h and a compiled runtime, carried in the executable
 *   options    the tables of commands and options, and their parser
 *   compile    source file -> C text, with its diagnostics printed
 *   process    starting the C compiler, waiting, signals
 *   cc         which C compiler, with which flags, and what its failure means
 *   cache      compiled programs by content
 *   commands   check, run, build, emit, explain
 *
 * Exit status: 0 fine, 1 errors in the program, 2 wrong usage or something outside the program that fails; `run` passes on the
 * program's own. Environment read: CC, PATH, TMPDIR, HOME, XDG_CACHE_HOME, NO_COLOR, TERM.
 */
#if !defined(_XOPEN_SOURCE) && !defined(__APPLE__)
#define _XOPEN_SOURCE 700
#endif

#define NEURO_IMPLEMENTATION
#include "neuro.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#if defined(__linux__)
#include <sys/prctl.h>
#endif

extern char **environ;

enum { CLI_OK = 0, CLI_PROGRAM = 1, CLI_USAGE = 2 };

#if defined(__GNUC__)
#define CLI_PRINTF(text, first) __attribute__((format(printf, text, first)))
#else
#define CLI_PRINTF(text, first)
#endif

/* ------------------------------------------------------------------------------------- */
//@@ base      text buffers, argument lists, words to the user

/* Says one thing on standard error. */
static CLI_PRINTF(1, 2) void
cli_say(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    fputs("neuro: ", stderr);
    vfprintf(stderr, format, args);
    fputc('\n', stderr);
    va_end(args);
}

static void *
cli_alloc(void *old, size_t size)
{
    void *p = realloc(old, size > 0 ? size : 1);
    if (p == NULL) {
        fputs("neuro: out of memory\n", stderr);
        exit(CLI_USAGE);
    }
    return p;
}

static char *
cli_copy(const char *s)
{
    size_t n = strlen(s) + 1;
    char *copy = (char *)cli_alloc(NULL, n);
    memcpy(copy, s, n);
    return copy;
}

/* A growing text, NUL-terminated once something was put. Zero is empty. owner: cli_text_free. */
typedef struct cli_text {
    char *data;
    size_t len;
    size_t cap;
} cli_text;

static void
cli_put(cli_text *t, const void *bytes, size_t n)
{
    if (t->len + n + 1 > t->cap) {
        t->cap = (t->len + n + 1) * 2;
        t->data = (char *)cli_alloc(t->data, t->cap);
    }
    if (n > 0) {
        memcpy(t->data + t->len, bytes, n);
    }
    t->len += n;
    t->data[t->len] = '\0';
}

static void
cli_puts(cli_text *t, const char *s)
{
    cli_put(t, s, strlen(s));
}

static void
cli_text_free(cli_text *t)
{
    free(t->data);
    memset(t, 0, sizeof *t);
}

/* The pieces joined, as a new string; the list ends in NULL. */
static char *
cli_join(const char *first, ...)
{
    cli_text t;
    va_list args;
    memset(&t, 0, sizeof t);
    va_start(args, first);
    for (const char *piece = first; piece != NULL; piece = va_arg(args, const char *)) {
        cli_puts(&t, piece);
    }
    va_end(args);
    return t.data;
}

/* Arguments of a command to start; owns its strings. items[n] is NULL. */
typedef struct cli_args {
    char **items;
    int n;
    int cap;
} cli_args;

static void
cli_arg_own(cli_args *a, char *s)
{
    if (a->n + 2 > a->cap) {
        a->cap = (a->n + 2) * 2;
        a->items = (char **)cli_alloc(a->items, (size_t)a->cap * sizeof *a->items);
    }
    a->items[a->n] = s;
    a->n += 1;
    a->items[a->n] = NULL;
}

static void
cli_arg(cli_args *a, const char *s)
{
    cli_arg_own(a, cli_copy(s));
}

static void
cli_args_free(cli_args *a)
{
    for (int i = 0; i < a->n; i++) {
        free(a->items[i]);
    }
    free(a->items);
    memset(a, 0, sizeof *a);
}

static double
cli_clock(void *user)
{
    struct timespec now;
    (void)user;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

/* ------------------------------------------------------------------------------------- */
//@@ files     reading, writing, private directories

/* A source file may have 16 MiB (the lexer says so); one byte more shows that there is more. */
enum { CLI_SOURCE_LIMIT = 16 * 1024 * 1024 + 1 };

static bool
cli_read_fd(int fd, size_t limit, cli_text *out)
{
    char block[65536];
    while (out->len < limit) {
        size_t room = limit - out->len;
        ssize_t n = read(fd, block, room < sizeof block ? room : sizeof block);
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n < 0) {
            return false;
        }
        if (n == 0) {
            break;
        }
        cli_put(out, block, (size_t)n);
    }
    cli_put(out, "", 0);
    return true;
}

/* The first `limit` bytes of a file; 0 or an errno. */
static int
cli_read(const char *path, size_t limit, cli_text *out)
{
    struct stat st;
    int error = 0;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return errno;
    }
    if (fstat(fd, &st) != 0) {
        error = errno;
    } else if (S_ISDIR(st.st_mode)) {
        error = EISDIR;
    } else if (!cli_read_fd(fd, limit, out)) {
        error = errno;
    }
    close(fd);
    return error;
}

static bool
cli_write_fd(int fd, const void *bytes, size_t n)
{
    const char *p = (const char *)bytes;
    while (n > 0) {
        ssize_t w = write(fd, p, n);
        if (w < 0 && errno == EINTR) {
            continue;
        }
        if (w <= 0) {
            return false;
        }
        p += w;
        n -= (size_t)w;
    }
    return true;
}

/* Makes or replaces a file; 0 or an errno. */
static int
cli_write(const char *path, const void *bytes, size_t n, mode_t mode)
{
    int error = 0;
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, mode);
    if (fd < 0) {
        return errno;
    }
    if (!cli_write_fd(fd, bytes, n)) {
        error = errno;
    }
    if (close(fd) != 0 && error == 0) {
        error = errno;
    }
    return error;
}

/* Reads a source file; says what is wrong with it. */
static bool
cli_read_source(const char *path, cli_text *out)
{
    int error = cli_read(path, CLI_SOURCE_LIMIT, out);
    if (error == 0) {
        return true;
    }
    if (error == EISDIR) {
        cli_say("'%s' is a directory; give the .nr files in it", path);
    } else if (error == ENOENT) {
        char *with = cli_join(path, ".nr", (char *)NULL);
        bool there = access(with, R_OK) == 0;
        cli_say("there is no file '%s'%s%s%s", path, there ? "; did you mean '" : "", there ? with : "", there ? "'?" : "");
        free(with);
    } else {
        cli_say("cannot read '%s': %s", path, strerror(error));
    }
    cli_text_free(out);
    return false;
}

/* Removes a directory of plain files. */
static void
cli_remove_directory(const char *path)
{
    DIR *d = opendir(path);
    if (d != NULL) {
        for (struct dirent *e = readdir(d); e != NULL; e = readdir(d)) {
            if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0) {
                char *file = cli_join(path, "/", e->d_name, (char *)NULL);
                unlink(file);
                free(file);
            }
        }
        closedir(d);
    }
    rmdir(path);
}

/* A new private directory inside `parent`, or NULL. */
static char *
cli_make_directory_in(const char *parent)
{
    char *path = cli_join(parent, "/neuro-XXXXXX", (char *)NULL);
    if (mkdtemp(path) == NULL) {
        free(path);
        return NULL;
    }
    return path;
}

/* A new private directory for temporary files; says so and gives NULL when there can be none. */
static char *
cli_make_directory(void)
{
    const char *tmp = getenv("TMPDIR");
    char *path = cli_make_directory_in(tmp != NULL && tmp[0] == '/' ? tmp : "/tmp");
    if (path == NULL) {
        cli_say("cannot make a directory for temporary files in %s: %s", tmp != NULL && tmp[0] == '/' ? tmp : "/tmp",
                strerror(errno));
    }
    return path;
}

/* Moves a file to its place, across file systems too; 0 or an errno. */
static int
cli_move(const char *from, const char *to)
{
    struct stat st;
    cli_text bytes;
    int error = 0;
    if (rename(from, to) == 0) {
        return 0;
    }
    if (errno != EXDEV) {
        return errno;
    }
    memset(&bytes, 0, sizeof bytes);
    error = stat(from, &st) == 0 ? cli_read(from, SIZE_MAX, &bytes) : errno;
    if (error == 0) {
        unlink(to);
        error = cli_write(to, bytes.data, bytes.len, st.st_mode & 0777u);
    }
    cli_text_free(&bytes);
    return error;
}

static const char *
cli_base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash != NULL ? slash + 1 : path;
}

/* "examples/hello.nr" -> "hello". */
static char *
cli_stem(const char *path)
{
    char *stem = cli_copy(cli_base_name(path));
    char *dot = strrchr(stem, '.');
    if (dot != NULL && dot != stem) {
        *dot = '\0';
    }
    return stem;
}

/* ------------------------------------------------------------------------------------- */
//@@ embedded  the text of neuro.h and a compiled runtime, carried in the executable
/* The Makefile compiles the runtime part of neuro.h to NEURO_CLI_RUNTIME before it compiles this file. Where the assembler has no
 * .incbin the driver reads neuro.h from where it was built, and compiles the runtime of each program. */

#if !defined(NEURO_CLI_RUNTIME)
#define NEURO_CLI_RUNTIME "build/neuro_rt.o"
#endif
#if !defined(NEURO_CLI_HOME)
#define NEURO_CLI_HOME "."
#endif

typedef struct cli_bytes {
    const char *data;
    size_t len;             /* 0: there is none */
} cli_bytes;

#if defined(__GNUC__)

#if defined(__APPLE__)
#define CLI_SYMBOL(name) "_" name
#define CLI_CONST_SECTION ".const_data\n"
#else
#define CLI_SYMBOL(name) name
#define CLI_CONST_SECTION ".section .rodata\n"
#endif

#define CLI_EMBED(name, file) \
    __asm__(CLI_CONST_SECTION ".balign 16\n" CLI_SYMBOL(name) ":\n.incbin \"" file "\"\n" \
            CLI_SYMBOL(name) "_end:\n.byte 0\n.text\n")

/* why .globl with hidden: a symbol of this file only, that C can still name. */
#if defined(__APPLE__)
__asm__(".private_extern _cli_header\n.private_extern _cli_header_end\n"
        ".private_extern _cli_runtime\n.private_extern _cli_runtime_end\n"
        ".globl _cli_header\n.globl _cli_header_end\n.globl _cli_runtime\n.globl _cli_runtime_end\n");
#else
__asm__(".globl cli_header\n.hidden cli_header\n.globl cli_header_end\n.hidden cli_header_end\n"
        ".globl cli_runtime\n.hidden cli_runtime\n.globl cli_runtime_end\n.hidden cli_runtime_end\n");
#endif
CLI_EMBED("cli_header", "neuro.h");
CLI_EMBED("cli_runtime", NEURO_CLI_RUNTIME);

#if defined(__cplusplus)
extern "C" {
#endif
extern const char cli_header[];
extern const char cli_header_end[];
extern const char cli_runtime[];
extern const char cli_runtime_end[];
#if defined(__cplusplus)
}
#endif

static cli_bytes
cli_embedded_header(void)
{
    cli_bytes b;
    b.data = cli_header;
    b.len = (size_t)(cli_header_end - cli_header);
    return b;
}

static cli_bytes
cli_embedded_runtime(void)
{
    cli_bytes b;
    b.data = cli_runtime;
    b.len = (size_t)(cli_runtime_end - cli_runtime);
    return b;
}

#else /* no .incbin */

static cli_bytes
cli_embedded_header(void)
{
    cli_text text;
    cli_bytes b;
    memset(&text, 0, sizeof text);
    if (cli_read(NEURO_CLI_HOME "/neuro.h", SIZE_MAX, &text) != 0) {
        cli_say("cannot read " NEURO_CLI_HOME "/neuro.h, which this build of neuro needs");
        exit(CLI_USAGE);
    }
    b.data = text.data;
    b.len = text.len;
    return b;
}

static cli_bytes
cli_embedded_runtime(void)
{
    cli_bytes b;
    b.data = "";
    b.len = 0;
    return b;
}

#endif /* .incbin */

/* ------------------------------------------------------------------------------------- */
//@@ options   the tables of commands and options, and their parser

typedef struct cli_options cli_options;

static int cli_check(const cli_options *o);
static int cli_run(const cli_options *o);
static int cli_build(const cli_options *o);
static int cli_emit(const cli_options *o);
static int cli_explain(const cli_options *o);

/*  id       name       what it takes        most files  function     what it does                                   more */
#define CLI_COMMANDS(ROW) \
    ROW(CHECK,   "check",   "FILE...",           INT_MAX, cli_check,   "reports the errors and warnings of programs", \
        "Nothing is compiled or run.") \
    ROW(RUN,     "run",     "FILE [ARGUMENT...]", 1,      cli_run,     "compiles a program and runs it", \
        "What follows the file goes to the program, whose exit status is passed on. Compiled programs are kept in\n" \
        "$XDG_CACHE_HOME/neuro or ~/.cache/neuro, so that an unchanged program starts at once.") \
    ROW(BUILD,   "build",   "FILE",              1,       cli_build,   "makes an executable or a shared library", \
        "The executable needs libc and libm only. Without -o it is named as the file, without .nr.") \
    ROW(EMIT,    "emit",    "FILE",              1,       cli_emit,    "writes the program as one C file", \
        "The C file includes neuro.h. Without -o it goes to standard output. With --header it has no main(): the\n" \
        "functions marked `export` are what C calls.") \
    ROW(EXPLAIN, "explain", "[CODE...]",         INT_MAX, cli_explain, "explains a code such as E0301, or lists all", \
        "The explanation shows a wrong and a right program.")

typedef enum cli_command {
#define CLI_ROW(id, name, takes, most, function, summary, more) CLI_##id,
    CLI_COMMANDS(CLI_ROW)
#undef CLI_ROW
    CLI_N_COMMANDS
} cli_command;

typedef struct cli_command_row {
    const char *name;
    const char *takes;
    int most;
    int (*function)(const cli_options *o);
    const char *summary;
    const char *more;
} cli_command_row;

static const cli_command_row cli_commands[] = {
#define CLI_ROW(id, name, takes, most, function, summary, more) { name, takes, most, function, summary, more },
    CLI_COMMANDS(CLI_ROW)
#undef CLI_ROW
};

/* Which commands take an option. */
enum {
    CLI_IN_CHECK = 1 << CLI_CHECK,
    CLI_IN_RUN = 1 << CLI_RUN,
    CLI_IN_BUILD = 1 << CLI_BUILD,
    CLI_IN_EMIT = 1 << CLI_EMIT,
    CLI_IN_MAKE = CLI_IN_RUN | CLI_IN_BUILD,
    CLI_IN_C = CLI_IN_MAKE | CLI_IN_EMIT,
    CLI_IN_ALL = CLI_IN_C | CLI_IN_CHECK
};

/*  id        spelling      value        in               what it does */
#define CLI_OPTIONS(ROW) \
    ROW(OUTPUT,   "-o",         "FILE",      CLI_IN_BUILD | CLI_IN_EMIT, "where the result goes") \
    ROW(HEADER,   "--header",   "FILE",      CLI_IN_EMIT,  "also writes the prototypes of the exported functions") \
    ROW(LINE,     "--line",     NULL,        CLI_IN_EMIT,  "#line directives: C compilers and debuggers show the .nr file") \
    ROW(OPTIMISE, "-O",         "0|1|2|3",   CLI_IN_C,     "0 (the default) checks overflow and positions; 1 to 3 do not") \
    ROW(CHECKED,  "--checked",  NULL,        CLI_IN_C,     "keeps these checks at -O1 to -O3") \
    ROW(SHARED,   "--shared",   NULL,        CLI_IN_BUILD, "makes a shared library of the exported functions") \
    ROW(STATIC,   "--static",   NULL,        CLI_IN_BUILD, "makes an executable that needs no shared library") \
    ROW(SANITIZE, "--sanitize", NULL,        CLI_IN_MAKE,  "with the address and undefined-behaviour sanitizers") \
    ROW(CC,       "--cc",       "COMMAND",   CLI_IN_MAKE,  "the C compiler; else $CC, or the first of cc gcc clang tcc") \
    ROW(TARGET,   "--target",   "TRIPLE",    CLI_IN_BUILD, "makes a program for another machine, as aarch64-linux-gnu") \
    ROW(THREADS,  "--threads",  "N",         CLI_IN_RUN,   "the most threads the program may use (sets NEURO_THREADS)") \
    ROW(TIME,     "--time",     NULL,        CLI_IN_ALL,   "says what each phase took") \
    ROW(STRICT,   "--strict",   NULL,        CLI_IN_ALL,   "takes warnings for errors") \
    ROW(JSON,     "--json",     NULL,        CLI_IN_CHECK | CLI_IN_BUILD, "diagnostics as JSON, one object a line, on standard output") \
    ROW(COLOR,    "--color",    "WHEN",      CLI_IN_ALL,   "auto (the default), always or never")

typedef enum cli_option {
#define CLI_ROW(id, spelling, value, commands, summary) CLI_OPT_##id,
    CLI_OPTIONS(CLI_ROW)
#undef CLI_ROW
    CLI_N_OPTIONS
} cli_option;

typedef struct cli_option_row {
    const char *spelling;
    const char *value;          /* what it takes; NULL: nothing */
    int commands;
    const char *summary;
} cli_option_row;

static const cli_option_row cli_option_rows[] = {
#define CLI_ROW(id, spelling, value, commands, summary) { spelling, value, commands, summary },
    CLI_OPTIONS(CLI_ROW)
#undef CLI_ROW
};

/* A parsed command line; points into argv. */
struct cli_options {
    cli_command command;
    const char *values[CLI_N_OPTIONS];      /* "" for an option without value that is given; NULL: not given */
    int optimise;
    bool color;
    char **files;
    int n_files;
    char **arguments;                       /* run: the program's own, files[0] first; NULL at the end */
    int n_arguments;
};

static bool
cli_given(const cli_options *o, cli_option option)
{
    return o->values[option] != NULL;
}

static void
cli_help(FILE *f)
{
    fprintf(f, "neuro %s: a small compiled language for tensor programs\n\n", NEURO_VERSION_TEXT);
    fprintf(f, "usage: neuro COMMAND [OPTION...] FILE...\n\n");
    for (int i = 0; i < CLI_N_COMMANDS; i++) {
        fprintf(f, "  %-8s %s\n", cli_commands[i].name, cli_commands[i].summary);
    }
    fprintf(f, "\n`neuro COMMAND --help` lists the options of a command; `neuro --version` gives the version.\n"
               "The exit status is 0, 1 when a program has errors, or 2 for wrong usage and files that cannot be read.\n");
}

static void
cli_command_help(FILE *f, cli_command command)
{
    const cli_command_row *row = &cli_commands[command];
    bool first = true;
    fprintf(f, "usage: neuro %s [OPTION...] %s\n\n%s: %s.\n%s\n", row->name, row->takes, row->name, row->summary, row->more);
    for (int i = 0; i < CLI_N_OPTIONS; i++) {
        const cli_option_row *option = &cli_option_rows[i];
        if ((option->commands & (1 << command)) != 0) {
            char *left = cli_join(option->spelling, option->value != NULL ? " " : "",
                                  option->value != NULL ? option->value : "", (char *)NULL);
            fprintf(f, "%s  %-16s %s\n", first ? "\n" : "", left, option->summary);
            first = false;
            free(left);
        }
    }
}

/* Does `arg` spell the option (alone, as `--cc=VALUE`, or as `-O2` and `-oFILE`)? *value is what is joined to it, or NULL. */
static bool
cli_spells(const cli_option_row *option, const char *arg, const char **value)
{
    size_t n = strlen(option->spelling);
    bool is_short = option->spelling[1] != '-';
    *value = NULL;
    if (strncmp(arg, option->spelling, n) != 0) {
        return false;
    }
    if (arg[n] == '\0') {
        return true;
    }
    if (option->value == NULL || (!is_short && arg[n] != '=')) {
        return false;
    }
    *value = arg + n + (is_short ? 0 : 1);
    return true;
}

static int
cli_find_option(cli_command command, const char *arg, const char **value)
{
    for (int i = 0; i < CLI_N_OPTIONS; i++) {
        if ((cli_option_rows[i].commands & (1 << command)) != 0 && cli_spells(&cli_option_rows[i], arg, value)) {
            return i;
        }
    }
    return -1;
}

/* Says why `arg` is no option of the command. */
static void
cli_unknown_option(cli_command command, const char *arg)
{
    const char *value;
    for (int i = 0; i < CLI_N_OPTIONS; i++) {
        if (cli_spells(&cli_option_rows[i], arg, &value)) {
            cli_say("'neuro %s' does not take %s; `neuro %s --help` lists what it takes", cli_commands[command].name,
                    cli_option_rows[i].spelling, cli_commands[command].name);
            return;
        }
    }
    cli_say("unknown option '%s'; `neuro %s --help` lists the options", arg, cli_commands[command].name);
}

static bool
cli_is_number(const char *s, long least, long most)
{
    char *end;
    long n;
    errno = 0;
    n = strtol(s, &end, 10);
    return errno == 0 && end != s && *end == '\0' && n >= least && n <= most;
}

static bool
cli_wants_color(void)
{
    const char *no_color = getenv("NO_COLOR");
    const char *term = getenv("TERM");
    return (no_color == NULL || no_color[0] == '\0') && term != NULL && strcmp(term, "dumb") != 0 && isatty(STDERR_FILENO);
}

/* Checks the values of the options and what goes together. */
static bool
cli_settle(cli_options *o)
{
    const char *level = o->values[CLI_OPT_OPTIMISE];
    const char *color = o->values[CLI_OPT_COLOR];
    const char *threads = o->values[CLI_OPT_THREADS];
    if (level != NULL) {
        if (!cli_is_number(level, 0, 3) || strlen(level) != 1) {
            cli_say("-O takes 0, 1, 2 or 3, not '%s'", level);
            return false;
        }
        o->optimise = level[0] - '0';
    }
    o->color = color != NULL ? strcmp(color, "always") == 0 : cli_wants_color();
    if (color != NULL && strcmp(color, "always") != 0 && strcmp(color, "never") != 0) {
        if (strcmp(color, "auto") != 0) {
            cli_say("--color takes auto, always or never, not '%s'", color);
            return false;
        }
        o->color = cli_wants_color();
    }
    if (threads != NULL && !cli_is_number(threads, 1, 4096)) {
        cli_say("--threads takes a number from 1 to 4096, not '%s'", threads);
        return false;
    }
    if (cli_given(o, CLI_OPT_SHARED) && cli_given(o, CLI_OPT_STATIC)) {
        cli_say("--shared and --static exclude each other");
        return false;
    }
    if (cli_given(o, CLI_OPT_STATIC) && cli_given(o, CLI_OPT_SANITIZE)) {
        cli_say("--sanitize does not work in a static executable; leave --static out");
        return false;
    }
    return true;
}

/* Takes the option at argv[*i], and its value. */
static bool
cli_take_option(cli_options *o, int argc, char **argv, int *i)
{
    const char *value;
    int option = cli_find_option(o->command, argv[*i], &value);
    if (option < 0) {
        cli_unknown_option(o->command, argv[*i]);
        return false;
    }
    if (cli_option_rows[option].value == NULL) {
        value = "";
    } else if (value == NULL) {
        if (*i + 1 >= argc) {
            cli_say("%s needs a value: %s %s", cli_option_rows[option].spelling, cli_option_rows[option].spelling,
                    cli_option_rows[option].value);
            return false;
        }
        *i += 1;
        value = argv[*i];
    }
    o->values[option] = value;
    return true;
}

/* Options and files, from argv[2] on. Files are moved together at the front. Options of `run` end at its file. */
static bool
cli_parse(cli_options *o, int argc, char **argv)
{
    bool only_files = false;
    o->files = argv + 2;
    for (int i = 2; i < argc; i++) {
        if (!only_files && strcmp(argv[i], "--") == 0) {
            only_files = true;
        } else if (!only_files && argv[i][0] == '-' && argv[i][1] != '\0') {
            if (!cli_take_option(o, argc, argv, &i)) {
                return false;
            }
        } else if (o->command == CLI_RUN) {
            o->files = o->arguments = argv + i;
            o->n_files = 1;
            o->n_arguments = argc - i;
            break;
        } else {
            o->files[o->n_files] = argv[i];
            o->n_files += 1;
        }
    }
    if (o->n_files == 0 && o->command != CLI_EXPLAIN) {
        cli_say("'neuro %s' needs a file: neuro %s [OPTION...] %s", cli_commands[o->command].name, cli_commands[o->command].name,
                cli_commands[o->command].takes);
        return false;
    }
    if (o->n_files > cli_commands[o->command].most) {
        cli_say("'neuro %s' takes one file, and '%s' is a second one", cli_commands[o->command].name, o->files[1]);
        return false;
    }
    return cli_settle(o);
}

/* ------------------------------------------------------------------------------------- */
//@@ compile   source file -> C text, with its diagnostics printed

typedef struct cli_program {
    cli_text source;
    neuro_compilation *compilation;         /* NULL when the compiler did not get that far */
    int n_errors;                           /* warnings too where --strict is given */
    int n_warnings;
} cli_program;

static void
cli_program_free(cli_program *p)
{
    neuro_compilation_free(p->compilation);
    cli_text_free(&p->source);
    memset(p, 0, sizeof *p);
}

/* All diagnostics as one text. */
static void
cli_render(cli_program *p, neuro_render how, cli_text *out)
{
    int n = neuro_diagnostic_count(p->compilation);
    for (int i = 0; i < n; i++) {
        size_t len;
        const char *text = neuro_diagnostic_text(p->compilation, i, how, &len);
        if (i > 0 && how != NEURO_RENDER_JSON) {
            cli_put(out, "\n", 1);
        }
        cli_put(out, text, len);
    }
}

static void
cli_report(const cli_options *o, cli_program *p)
{
    cli_text text;
    bool json = cli_given(o, CLI_OPT_JSON);
    memset(&text, 0, sizeof text);
    cli_render(p, json ? NEURO_RENDER_JSON : o->color ? NEURO_RENDER_COLOR : NEURO_RENDER_PLAIN, &text);
    if (text.len > 0) {
        fwrite(text.data, 1, text.len, json ? stdout : stderr);
    }
    cli_text_free(&text);
}

/* "2 errors, 1 warning" after the diagnostics of all files. */
static void
cli_summary(const cli_options *o, int errors, int warnings)
{
    if (cli_given(o, CLI_OPT_JSON) || errors + warnings == 0) {
        return;
    }
    fputc('\n', stderr);
    if (errors > 0) {
        fprintf(stderr, "%d error%s%s", errors, errors == 1 ? "" : "s", warnings > 0 ? ", " : "");
    }
    if (warnings > 0) {
        fprintf(stderr, "%d warning%s%s", warnings, warnings == 1 ? "" : "s",
                cli_given(o, CLI_OPT_STRICT) ? " (errors under --strict)" : "");
    }
    fputc('\n', stderr);
}

static void
cli_print_time(const char *phase, double seconds)
{
    fprintf(stderr, "time: %-16s %9.2f ms\n", phase, seconds * 1e3);
}

static void
cli_print_phases(const neuro_compilation *compilation)
{
    double seconds;
    for (int i = 0;; i++) {
        const char *phase = neuro_phase(compilation, i, &seconds);
        if (phase == NULL) {
            return;
        }
        cli_print_time(phase, seconds);
    }
}

/* Compiles p->source, prints what there is to say. CLI_OK, or the exit status. */
static int
cli_compile(const cli_options *o, const char *name, neuro_compile_desc *desc, cli_program *p)
{
    neuro_result result;
    desc->name = name;
    desc->text = p->source.data;
    desc->text_len = p->source.len;
    desc->optimise = o->optimise;
    desc->keep_checks = cli_given(o, CLI_OPT_CHECKED);
    if (cli_given(o, CLI_OPT_TIME)) {
        desc->clock = cli_clock;
    }
    result = neuro_compile(desc, &p->compilation);
    if (p->compilation == NULL) {
        cli_say("cannot compile '%s': %s", name, neuro_result_text(result));
        return CLI_USAGE;
    }
    cli_report(o, p);
    p->n_errors = neuro_error_count(p->compilation);
    p->n_warnings = neuro_diagnostic_count(p->compilation) - p->n_errors;
    if (cli_given(o, CLI_OPT_TIME)) {
        cli_print_phases(p->compilation);
    }
    return p->n_errors > 0 || (p->n_warnings > 0 && cli_given(o, CLI_OPT_STRICT)) ? CLI_PROGRAM : CLI_OK;
}

/* Reads and compiles the one file of a command; prints the summary when that ends it. */
static int
cli_compile_file(const cli_options *o, neuro_compile_desc *desc, cli_program *p)
{
    int status;
    if (p->source.data == NULL && !cli_read_source(o->files[0], &p->source)) {
        return CLI_USAGE;
    }
    status = cli_compile(o, o->files[0], desc, p);
    if (status == CLI_PROGRAM) {
        cli_summary(o, p->n_errors, p->n_warnings);
    }
    return status;
}

/* Says that a program cannot be started, where the emitted C has no main(). */
static bool
cli_has_main(const cli_program *p, const char *file)
{
    if (strstr(neuro_c_text(p->compilation, NULL), "\nmain(int argc, char **argv)\n") != NULL) {
        return true;
    }
    cli_say("'%s' has no `func main()`, so there is nothing to run; `neuro build --shared` makes a library of its exported functions",
            file);
    return false;
}

/* ------------------------------------------------------------------------------------- */
//@@ process   starting the C compiler, waiting, signals

/* The signal that asks this process to end, 0 if none. The one mutable global: a signal handler has no other place. */
static volatile sig_atomic_t cli_stop;

static void
cli_on_signal(int number)
{
    cli_stop = number;
}

/* Signals that end the driver are held until its temporary files are gone; cli_give_in then obeys. Starts with the first child. */
static void
cli_hold_signals(void)
{
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_handler = cli_on_signal;
    sigemptyset(&action.sa_mask);
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    sigaction(SIGHUP, &action, NULL);
}

static void
cli_default_signals(void)
{
    signal(SIGINT, SIG_DFL);
    signal(SIGTERM, SIG_DFL);
    signal(SIGHUP, SIG_DFL);
}

static void
cli_give_in(void)
{
    int number = cli_stop;
    if (number != 0) {
        cli_default_signals();
        raise(number);
    }
}

/* Waits for a child, handing on to it a signal that asks us to end. */
static int
cli_wait(pid_t child)
{
    int status = 0;
    while (waitpid(child, &status, 0) < 0) {
        if (errno != EINTR) {
            return -1;
        }
        if (cli_stop != 0) {
            kill(child, cli_stop);
        }
    }
    return status;
}

/* Runs a command without a shell: nothing to read, what it writes goes to the file `log`. Its wait status, or -1 with errno. */
static int
cli_spawn(const cli_args *command, const char *log)
{
    posix_spawn_file_actions_t files;
    pid_t child;
    int error;
    cli_hold_signals();
    posix_spawn_file_actions_init(&files);
    posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_addopen(&files, STDOUT_FILENO, log, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    posix_spawn_file_actions_adddup2(&files, STDOUT_FILENO, STDERR_FILENO);
    error = posix_spawn(&child, command->items[0], &files, NULL, command->items, environ);
    posix_spawn_file_actions_destroy(&files);
    if (error != 0) {
        errno = error;
        return -1;
    }
    return cli_wait(child);
}

typedef struct cli_signal_row {
    int number;
    const char *text;           /* NULL: needs no word */
} cli_signal_row;

static const cli_signal_row cli_signals[] = {
    { SIGABRT, "the program aborted" },
    { SIGSEGV, "the program was stopped at an invalid memory access: most often a recursion that does not end. "
               "`neuro run --sanitize` shows where" },
    { SIGBUS, "the program was stopped at an invalid memory access (SIGBUS). `neuro run --sanitize` shows where" },
    { SIGFPE, "the program was stopped at a wrong arithmetic operation (SIGFPE). `neuro run --sanitize` shows where" },
    { SIGILL, "the program was stopped at an instruction that this machine does not have (SIGILL)" },
    { SIGKILL, "the program was killed: by another process, or because memory ran out" },
    { SIGINT, NULL }, { SIGTERM, NULL }, { SIGHUP, NULL }, { SIGPIPE, NULL }
};

/* The exit status for a program's wait status, as a shell gives it; says what a signal means. */
static int
cli_program_status(int status)
{
    const int n = (int)(sizeof cli_signals / sizeof *cli_signals);
    if (WIFEXITED(status)) {
        return WEXITSTATUS(status);
    }
    for (int i = 0; i < n; i++) {
        if (cli_signals[i].number == WTERMSIG(status)) {
            if (cli_signals[i].text != NULL) {
                cli_say("%s", cli_signals[i].text);
            }
            return 128 + WTERMSIG(status);
        }
    }
    cli_say("the program was stopped by signal %d", WTERMSIG(status));
    return 128 + WTERMSIG(status);
}

/* ------------------------------------------------------------------------------------- */
//@@ cache     compiled programs by content
/* An entry is one file: what the C compiler made, the program's warnings as plain and as coloured text, and a trailer with their
 * lengths and a hash over everything before it. Loaders and linkers ignore what follows their own part. Entries are written under
 * another name and renamed, so that concurrent runs see whole entries or none; a damaged entry fails its hash and is made again. */

/* Two independent 64-bit lanes, eight bytes a step. Not against forgers: the directory is the user's own. */
typedef struct cli_hash {
    uint64_t a;
    uint64_t b;
} cli_hash;

static cli_hash
cli_hash_start(void)
{
    cli_hash h;
    h.a = UINT64_C(0x9e3779b97f4a7c15);
    h.b = UINT64_C(0xd1b54a32d192ed03);
    return h;
}

static void
cli_hash_word(cli_hash *h, uint64_t w)
{
    h->a = (h->a ^ w) * UINT64_C(0xff51afd7ed558ccd);
    h->a ^= h->a >> 32;
    h->b = (h->b + w) * UINT64_C(0xc4ceb9fe1a85ec53);
    h->b = (h->b << 31 | h->b >> 33) ^ w;
}

/* The bytes and their number, so that pieces cannot run together. */
static void
cli_hash_bytes(cli_hash *h, const void *bytes, size_t n)
{
    const char *p = (const char *)bytes;
    uint64_t w;
    size_t left = n;
    for (; left >= 8; left -= 8, p += 8) {
        memcpy(&w, p, 8);
        cli_hash_word(h, w);
    }
    w = 0;
    memcpy(&w, p, left);
    cli_hash_word(h, w);
    cli_hash_word(h, (uint64_t)n);
}

static void
cli_hash_text(cli_hash *h, const char *s)
{
    cli_hash_bytes(h, s, strlen(s));
}

static void
cli_hash_finish(cli_hash *h)
{
    for (int i = 0; i < 4; i++) {
        cli_hash_word(h, h->a ^ (h->b >> 17));
    }
}

/* This very executable: the runtime that programs are loaded against, and the compiler. */
static void
cli_hash_self(cli_hash *h)
{
    struct stat st;
    int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    cli_hash_text(h, NEURO_VERSION_TEXT);
    if (fd >= 0 && fstat(fd, &st) == 0 && st.st_size > 0) {
        void *p = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
        if (p != MAP_FAILED) {
            cli_hash_bytes(h, p, (size_t)st.st_size);
            munmap(p, (size_t)st.st_size);
            close(fd);
            return;
        }
    }
    if (fd >= 0) {
        close(fd);
    }
    cli_hash_bytes(h, cli_embedded_header().data, cli_embedded_header().len);
    cli_hash_bytes(h, cli_embedded_runtime().data, cli_embedded_runtime().len);
}

/* Makes `path` if it is not there; true when it is a directory of ours that nobody else can write to or read. */
static bool
cli_is_private(const char *path)
{
    struct stat st;
    mkdir(path, 0700);
    if (lstat(path, &st) != 0 || !S_ISDIR(st.st_mode) || st.st_uid != geteuid()) {
        return false;
    }
    return (st.st_mode & 077u) == 0 || chmod(path, 0700) == 0;
}

/* The cache directory, or NULL where there can be none (no home, not ours, not writable): everything works without. */
static char *
cli_cache_directory(void)
{
    const char *xdg = getenv("XDG_CACHE_HOME");
    const char *home = getenv("HOME");
    char *parent;
    char *path;
    if (xdg != NULL && xdg[0] == '/') {
        parent = cli_copy(xdg);
    } else if (home != NULL && home[0] == '/') {
        parent = cli_join(home, "/.cache", (char *)NULL);
    } else {
        return NULL;
    }
    path = cli_join(parent, "/neuro", (char *)NULL);
    mkdir(parent, 0700);
    free(parent);
    if (!cli_is_private(path) || access(path, R_OK | W_OK | X_OK) != 0) {
        free(path);
        return NULL;
    }
    return path;
}

typedef struct cli_trailer {
    char magic[8];
    uint64_t made_len;          /* (bytes) */
    uint64_t plain_len;
    uint64_t color_len;
    cli_hash hash;              /* of everything before it in the file */
} cli_trailer;

static const char cli_magic[8] = { 'n', 'e', 'u', 'r', 'o', 'r', 'u', '1' };

typedef struct cli_entry {
    cli_text file;              /* all of it */
    cli_bytes made;             /* its parts */
    cli_bytes plain;
    cli_bytes color;
} cli_entry;

/* The hash over an entry before its trailer's hash. */
static cli_hash
cli_entry_hash(const cli_text *file, const cli_trailer *t)
{
    cli_hash h = cli_hash_start();
    cli_hash_bytes(&h, file->data, (size_t)(t->made_len + t->plain_len + t->color_len));
    cli_hash_word(&h, t->made_len);
    cli_hash_word(&h, t->plain_len);
    cli_hash_finish(&h);
    return h;
}

/* Reads an entry; false when it is not there or damaged. owner: cli_text_free(&e->file). */
static bool
cli_cache_get(const char *path, cli_entry *e)
{
    cli_trailer t;
    cli_hash h;
    size_t body;
    memset(e, 0, sizeof *e);
    if (cli_read(path, SIZE_MAX, &e->file) != 0) {
        cli_text_free(&e->file);
        return false;
    }
    body = e->file.len >= sizeof t ? e->file.len - sizeof t : 0;
    if (body > 0) {
        memcpy(&t, e->file.data + body, sizeof t);
        if (memcmp(t.magic, cli_magic, sizeof t.magic) == 0 && t.made_len <= body && t.plain_len <= body &&
            t.color_len <= body && t.made_len + t.plain_len + t.color_len == body) {
            h = cli_entry_hash(&e->file, &t);
            if (h.a == t.hash.a && h.b == t.hash.b) {
                e->made.data = e->file.data;
                e->made.len = (size_t)t.made_len;
                e->plain.data = e->file.data + t.made_len;
                e->plain.len = (size_t)t.plain_len;
                e->color.data = e->plain.data + t.plain_len;
                e->color.len = (size_t)t.color_len;
                return true;
            }
        }
    }
    cli_text_free(&e->file);
    return false;
}

/* Stores what the C compiler made; nothing happens where it cannot. */
static void
cli_cache_put(const char *path, const cli_text *made, const cli_text *plain, const cli_text *color)
{
    char suffix[32];
    cli_text file;
    cli_trailer t;
    char *other;
    memset(&file, 0, sizeof file);
    memset(&t, 0, sizeof t);
    memcpy(t.magic, cli_magic, sizeof t.magic);
    t.made_len = made->len;
    t.plain_len = plain->len;
    t.color_len = color->len;
    cli_put(&file, made->data, made->len);
    cli_put(&file, plain->data, plain->len);
    cli_put(&file, color->data, color->len);
    t.hash = cli_entry_hash(&file, &t);
    cli_put(&file, &t, sizeof t);
    snprintf(suffix, sizeof suffix, ".%ld", (long)getpid());
    other = cli_join(path, suffix, (char *)NULL);
    if (cli_write(other, file.data, file.len, 0700) != 0 || rename(other, path) != 0) {
        unlink(other);
    }
    free(other);
    cli_text_free(&file);
}

enum { CLI_CACHE_MOST = 400 };

/* Removes the entry used longest ago once there are too many. */
static void
cli_cache_trim(const char *directory)
{
    DIR *d = opendir(directory);
    char *oldest = NULL;
    time_t oldest_time = 0;
    int n = 0;
    if (d == NULL) {
        return;
    }
    for (struct dirent *e = readdir(d); e != NULL; e = readdir(d)) {
        struct stat st;
        char *path = cli_join(directory, "/", e->d_name, (char *)NULL);
        if (lstat(path, &st) == 0 && S_ISREG(st.st_mode)) {
            n += 1;
            if (oldest == NULL || st.st_mtime < oldest_time) {
                free(oldest);
                oldest = cli_copy(path);
                oldest_time = st.st_mtime;
            }
        }
        free(path);
    }
    closedir(d);
    if (n > CLI_CACHE_MOST) {
        unlink(oldest);
    }
    free(oldest);
}

/* "DIRECTORY/0123...ef.KIND" */
static char *
cli_cache_path(const char *directory, const cli_hash *key, const char *kind)
{
    char name[40];
    snprintf(name, sizeof name, "/%016llx%016llx.", (unsigned long long)key->a, (unsigned long long)key->b);
    return cli_join(directory, name, kind, (char *)NULL);
}

/* ------------------------------------------------------------------------------------- */
//@@ cc        which C compiler, with which flags, and what its failure means

typedef struct cli_compiler {
    cli_args command;           /* its path, then the further words of --cc or CC */
    bool is_clang;              /* by its name */
    bool is_tcc;
    bool is_usual;              /* a compiler of this machine, by its name: the embedded runtime fits what it makes */
} cli_compiler;

/* The executable that a name stands for, or NULL. */
static char *
cli_find_executable(const char *name)
{
    const char *path = getenv("PATH");
    if (strchr(name, '/') != NULL) {
        return access(name, X_OK) == 0 ? cli_copy(name) : NULL;
    }
    while (path != NULL && *path != '\0') {
        const char *end = strchr(path, ':');
        size_t n = end != NULL ? (size_t)(end - path) : strlen(path);
        cli_text file;
        struct stat st;
        memset(&file, 0, sizeof file);
        cli_put(&file, path, n);
        cli_puts(&file, n > 0 ? "/" : "./");
        cli_puts(&file, name);
        if (access(file.data, X_OK) == 0 && stat(file.data, &st) == 0 && S_ISREG(st.st_mode)) {
            return file.data;
        }
        cli_text_free(&file);
        path = end != NULL ? end + 1 : NULL;
    }
    return NULL;
}

/* gcc, gcc-12, clang-14 and the like. */
static bool
cli_is_usual_name(const char *name)
{
    static const char *const usual[] = { "cc", "gcc", "clang", "tcc" };
    for (size_t i = 0; i < sizeof usual / sizeof *usual; i++) {
        size_t n = strlen(usual[i]);
        if (strncmp(name, usual[i], n) == 0 && (name[n] == '\0' || name[n] == '-') &&
            strspn(name + n, "-.0123456789") == strlen(name + n)) {
            return true;
        }
    }
    return false;
}

static void
cli_recognise(cli_compiler *cc)
{
    const char *name = cli_base_name(cc->command.items[0]);
    cc->is_clang = strstr(name, "clang") != NULL;
    cc->is_tcc = strcmp(name, "tcc") == 0 || strstr(name, "-tcc") != NULL;
    cc->is_usual = cc->command.n == 1 && cli_is_usual_name(name);
}

/* The command in a text such as "ccache gcc -m32": words at spaces, the first an executable. */
static bool
cli_split_command(const char *text, cli_compiler *cc)
{
    while (*text != '\0') {
        size_t n = strcspn(text, " \t\n");
        if (n > 0) {
            cli_text word;
            memset(&word, 0, sizeof word);
            cli_put(&word, text, n);
            if (cc->command.n == 0) {
                char *path = cli_find_executable(word.data);
                cli_text_free(&word);
                if (path == NULL) {
                    return false;
                }
                word.data = path;
            }
            cli_arg_own(&cc->command, word.data);
        }
        text += n + strspn(text + n, " \t\n");
    }
    return cc->command.n > 0;
}

/* The compiler asked for by --cc or CC; says what is wrong with it. */
static bool
cli_named_compiler(const char *text, const char *origin, cli_compiler *cc)
{
    if (cli_split_command(text, cc)) {
        cli_recognise(cc);
        return true;
    }
    cli_say("the C compiler '%s' that %s names was not found; give a command in PATH or a path, or leave it out", text, origin);
    return false;
}

static bool
cli_first_compiler(const char *const *names, int n, const char *prefix, cli_compiler *cc)
{
    for (int i = 0; i < n; i++) {
        char *name = cli_join(prefix, names[i], (char *)NULL);
        char *path = cli_find_executable(name);
        free(name);
        if (path != NULL) {
            cli_arg_own(&cc->command, path);
            cli_recognise(cc);
            return true;
        }
    }
    return false;
}

/* A compiler for another machine: TRIPLE-gcc and the like, or clang with --target. */
static bool
cli_target_compiler(const char *target, cli_compiler *cc)
{
    static const char *const cross[] = { "gcc", "cc", "clang" };
    static const char *const clang[] = { "clang" };
    char *prefix = cli_join(target, "-", (char *)NULL);
    bool found = cli_first_compiler(cross, 3, prefix, cc);
    free(prefix);
    if (!found && cli_first_compiler(clang, 1, "", cc)) {
        cli_arg_own(&cc->command, cli_join("--target=", target, (char *)NULL));
        found = true;
    }
    if (!found) {
        cli_say("no C compiler for %s: there is no %s-gcc and no clang in PATH; install one, or name it with --cc", target, target);
    }
    cc->is_usual = false;
    return found;
}

/* Finds the C compiler; says what to do when there is none. owner: cli_args_free(&cc->command). */
static bool
cli_find_compiler(const cli_options *o, cli_compiler *cc)
{
    static const char *const names[] = { "cc", "gcc", "clang", "tcc" };
    const char *named = o->values[CLI_OPT_CC];
    const char *target = o->values[CLI_OPT_TARGET];
    const char *variable = getenv("CC");
    memset(cc, 0, sizeof *cc);
    if (named != NULL) {
        if (!cli_named_compiler(named, "--cc", cc)) {
            return false;
        }
        if (target != NULL && cc->is_clang) {
            cli_arg_own(&cc->command, cli_join("--target=", target, (char *)NULL));
        }
        cc->is_usual = cc->is_usual && target == NULL;
        return true;
    }
    if (target != NULL) {
        return cli_target_compiler(target, cc);
    }
    if (variable != NULL && variable[strspn(variable, " \t\n")] != '\0') {
        return cli_named_compiler(variable, "the environment variable CC", cc);
    }
    if (cli_first_compiler(names, 4, "", cc)) {
        return true;
    }
    cli_say("no C compiler was found: neuro compiles through C, and none of cc, gcc, clang, tcc is in PATH.\n"
            "       Install one (Debian and Ubuntu: apt install gcc; macOS: xcode-select --install), or name it with --cc or CC.\n"
            "       `neuro check` and `neuro emit` work without.");
    return false;
}

/* The compiler's path, time and size, and all words of its command. */
static void
cli_hash_compiler(cli_hash *h, const cli_compiler *cc)
{
    for (int i = 0; i < cc->command.n; i++) {
        char *path = i == 0 ? cli_copy(cc->command.items[0]) : cli_find_executable(cc->command.items[i]);
        struct stat st;
        cli_hash_text(h, cc->command.items[i]);
        if (path != NULL && stat(path, &st) == 0) {
            cli_hash_word(h, (uint64_t)st.st_mtime);
            cli_hash_word(h, (uint64_t)st.st_size);
            cli_hash_word(h, (uint64_t)st.st_ino);
        }
        free(path);
    }
}

/* What one run or build works with. */
typedef struct cli_work {
    const cli_options *o;
    cli_compiler cc;
    char *directory;            /* private, removed at the end */
    char *stem;                 /* "hello" of examples/hello.nr */
    bool keep;                  /* the directory stays: it shows a bug of ours */
    bool shared;                /* a shared object is made, not an executable */
} cli_work;

static void
cli_work_free(cli_work *w)
{
    if (w->directory != NULL && !w->keep) {
        cli_remove_directory(w->directory);
    }
    free(w->directory);
    free(w->stem);
    cli_args_free(&w->cc.command);
}

static char *
cli_work_path(const cli_work *w, const char *name, const char *ending)
{
    return cli_join(w->directory, "/", name, ending, (char *)NULL);
}

/* The compiler and the flags of every C file; nothing that differs between two works of the same options. */
static void
cli_start_command(const cli_work *w, cli_args *a)
{
    static const char *const levels[] = { "-O1", "-O1", "-O2", "-O3" };
    memset(a, 0, sizeof *a);
    for (int i = 0; i < w->cc.command.n; i++) {
        cli_arg(a, w->cc.command.items[i]);
    }
    cli_arg(a, "-std=c11");
    cli_arg(a, levels[w->o->optimise]);
    cli_arg(a, "-w");
    if (!w->cc.is_tcc) {
        cli_arg(a, "-ffp-contract=off");
    }
    if (cli_given(w->o, CLI_OPT_SANITIZE)) {
        cli_arg(a, "-g");
        cli_arg(a, "-fsanitize=address,undefined");
        cli_arg(a, "-fno-sanitize-recover=undefined");
        cli_arg(a, "-fno-omit-frame-pointer");
    }
    if (w->shared) {
        cli_arg(a, "-fPIC");
    }
}

/* Starts a finished command; says when it cannot be started. True when it succeeds. */
static bool
cli_run_compiler(const cli_work *w, cli_args *a, const char *phase)
{
    double start = cli_clock(NULL);
    char *log = cli_work_path(w, "log", ".txt");
    int status = cli_spawn(a, log);
    if (status == -1) {
        cli_say("cannot start the C compiler %s: %s", a->items[0], strerror(errno));
    }
    free(log);
    if (cli_given(w->o, CLI_OPT_TIME)) {
        cli_print_time(phase, cli_clock(NULL) - start);
    }
    return status == 0;
}

static bool
cli_write_work(const cli_work *w, const char *name, const char *ending, const void *bytes, size_t n)
{
    char *path = cli_work_path(w, name, ending);
    int error = cli_write(path, bytes, n, 0600);
    if (error != 0) {
        cli_say("cannot write %s: %s", path, strerror(error));
    }
    free(path);
    return error == 0;
}

/* The cache entry of the runtime for the command `a`, or NULL. */
static char *
cli_runtime_entry(const cli_work *w, const cli_args *a)
{
    char *cache = cli_cache_directory();
    char *path = NULL;
    if (cache != NULL) {
        cli_hash key = cli_hash_start();
        cli_hash_self(&key);
        cli_hash_compiler(&key, &w->cc);
        for (int i = 0; i < a->n; i++) {
            cli_hash_text(&key, a->items[i]);
        }
        cli_hash_finish(&key);
        path = cli_cache_path(cache, &key, "o");
    }
    free(cache);
    return path;
}

/* Compiles the runtime with the command `a`, and keeps the result as the cache entry `path`. */
static bool
cli_compile_runtime(const cli_work *w, cli_args *a, const char *path)
{
    static const char text[] = "#define NEURO_RUNTIME_ONLY 1\n#define NEURO_IMPLEMENTATION\n#include \"neuro.h\"\n";
    char *object = cli_work_path(w, "neuro_rt", ".o");
    bool ok = cli_write_work(w, "neuro_rt", ".c", text, sizeof text - 1);
    cli_arg_own(a, cli_join("-I", w->directory, (char *)NULL));
    cli_arg(a, "-c");
    cli_arg_own(a, cli_work_path(w, "neuro_rt", ".c"));
    cli_arg(a, "-o");
    cli_arg(a, object);
    ok = ok && cli_run_compiler(w, a, "C runtime");
    if (ok && path != NULL) {
        cli_text made, none;
        memset(&made, 0, sizeof made);
        memset(&none, 0, sizeof none);
        if (cli_read(object, SIZE_MAX, &made) == 0) {
            cli_cache_put(path, &made, &none, &none);
        }
        cli_text_free(&made);
    }
    free(object);
    return ok;
}

/* Puts neuro_rt.o, made with the flags of this work, into its directory. It takes a second to compile, so the cache keeps it. */
static bool
cli_make_runtime(const cli_work *w)
{
    cli_args a;
    cli_entry entry;
    char *path;
    bool ok;
    cli_start_command(w, &a);
    path = cli_runtime_entry(w, &a);
    if (path != NULL && cli_cache_get(path, &entry)) {
        ok = cli_write_work(w, "neuro_rt", ".o", entry.made.data, entry.made.len);
        cli_text_free(&entry.file);
    } else {
        ok = cli_compile_runtime(w, &a, path);
    }
    free(path);
    cli_args_free(&a);
    return ok;
}

/* Prints what the C compiler wrote, up to a few lines. */
static void
cli_print_log(const cli_work *w)
{
    char *path = cli_work_path(w, "log", ".txt");
    cli_text text;
    memset(&text, 0, sizeof text);
    if (cli_read(path, 4000, &text) == 0 && text.len > 0) {
        fprintf(stderr, "%s%s", text.data, text.data[text.len - 1] == '\n' ? "" : "\n");
    }
    cli_text_free(&text);
    free(path);
}

/* Whether the compiler makes anything at all of a program without our text, with the same flags. */
static bool
cli_probe(const cli_work *w)
{
    static const char text[] = "#include <math.h>\n#include <stdio.h>\nint main(void) { printf(\"%g\", floor(0.5)); return 0; }\n";
    cli_args a;
    bool ok = cli_write_work(w, "probe", ".c", text, sizeof text - 1);
    cli_start_command(w, &a);
    if (w->shared) {
        cli_arg(&a, "-shared");
    }
    if (cli_given(w->o, CLI_OPT_STATIC)) {
        cli_arg(&a, "-static");
    }
    cli_arg_own(&a, cli_work_path(w, "probe", ".c"));
    cli_arg(&a, "-o");
    cli_arg_own(&a, cli_work_path(w, "probe", ".out"));
    cli_arg(&a, "-lm");
    ok = ok && cli_run_compiler(w, &a, "C probe");
    cli_args_free(&a);
    return ok;
}

/* The C compiler failed on the command `a`: says whose fault it is. */
static void
cli_explain_failure(cli_work *w, const cli_args *a)
{
    char *log = cli_work_path(w, "log", ".txt");
    char *kept = cli_work_path(w, "failure", ".txt");
    rename(log, kept);
    if (cli_stop != 0) {
        cli_say("stopped");
    } else if (!cli_probe(w)) {
        cli_say("the C compiler %s does not compile even an empty program with these options. It says:", w->cc.command.items[0]);
        cli_print_log(w);
    } else {
        rename(kept, log);
        cli_say("the C compiler %s fails on what neuro made of '%s'. It says:", w->cc.command.items[0], w->o->files[0]);
        cli_print_log(w);
        cli_say("this is a bug of neuro, not of your program: please report it. The C file is kept:");
        fprintf(stderr, "  %s/%s.c\nand was compiled with:\n ", w->directory, w->stem);
        for (int i = 0; i < a->n; i++) {
            fprintf(stderr, " %s", a->items[i]);
        }
        fputc('\n', stderr);
        w->keep = true;
    }
    free(kept);
    free(log);
}

/* The command that makes `out` of the emitted C; with the runtime's object unless a `neuro run` brings it. */
static void
cli_program_command(const cli_work *w, bool with_runtime, cli_args *a)
{
    cli_start_command(w, a);
    cli_arg_own(a, cli_join("-I", w->directory, (char *)NULL));
    if (w->shared) {
        cli_arg(a, "-shared");
    }
    if (cli_given(w->o, CLI_OPT_STATIC)) {
        cli_arg(a, "-static");
    }
    cli_arg_own(a, cli_work_path(w, w->stem, ".c"));
    if (with_runtime) {
        cli_arg_own(a, cli_work_path(w, "neuro_rt", ".o"));
    }
#if defined(__APPLE__)
    if (!with_runtime) {
        cli_arg(a, "-Wl,-undefined,dynamic_lookup");
    }
#endif
    cli_arg(a, "-o");
    cli_arg_own(a, cli_work_path(w, w->stem, ".out"));
    cli_arg(a, "-lm");
}

/* Compiles the emitted C in the work's directory to STEM.out there. Explains a failure. */
static bool
cli_make(cli_work *w, const cli_program *p, bool with_runtime)
{
    size_t len;
    const char *text = neuro_c_text(p->compilation, &len);
    cli_bytes header = cli_embedded_header();
    cli_bytes runtime = cli_embedded_runtime();
    bool fits = w->cc.is_usual && !cli_given(w->o, CLI_OPT_SANITIZE) && runtime.len > 0;
    cli_args a;
    bool ok;
    if (!cli_write_work(w, w->stem, ".c", text, len) || !cli_write_work(w, "neuro", ".h", header.data, header.len)) {
        return false;
    }
    cli_program_command(w, with_runtime, &a);
    ok = !with_runtime || (fits ? cli_write_work(w, "neuro_rt", ".o", runtime.data, runtime.len) : cli_make_runtime(w));
    ok = ok && cli_run_compiler(w, &a, with_runtime ? "C compile, link" : "C compile");
    if (!ok && with_runtime && fits && cli_stop == 0) {
        /* why: the embedded object is of another machine or libc than this compiler's; compile it there */
        ok = cli_make_runtime(w) && cli_run_compiler(w, &a, "C again");
    }
    if (!ok) {
        cli_explain_failure(w, &a);
    }
    cli_args_free(&a);
    return ok;
}

/* ------------------------------------------------------------------------------------- */
//@@ commands  check, run, build, emit, explain

/* neuro check: every file is checked, also after one that cannot be read. */
static int
cli_check(const cli_options *o)
{
    int status = CLI_OK;
    int errors = 0;
    int warnings = 0;
    for (int i = 0; i < o->n_files; i++) {
        neuro_compile_desc desc;
        cli_program p;
        int one = CLI_USAGE;
        memset(&desc, 0, sizeof desc);
        memset(&p, 0, sizeof p);
        desc.check_only = true;
        if (cli_read_source(o->files[i], &p.source)) {
            one = cli_compile(o, o->files[i], &desc, &p);
            errors += p.n_errors;
            warnings += p.n_warnings;
        }
        status = one > status ? one : status;
        cli_program_free(&p);
    }
    cli_summary(o, errors, warnings);
    return status;
}

/* What decides the compiled form of a program that is run. */
static cli_hash
cli_run_key(const cli_options *o, const cli_compiler *cc, const cli_text *source)
{
    cli_hash key = cli_hash_start();
    cli_hash_self(&key);
    cli_hash_compiler(&key, cc);
    cli_hash_text(&key, o->files[0]);
    cli_hash_bytes(&key, source->data, source->len);
    cli_hash_word(&key, (uint64_t)o->optimise);
    cli_hash_word(&key, cli_given(o, CLI_OPT_CHECKED) ? 1 : 0);
    cli_hash_word(&key, cli_given(o, CLI_OPT_SANITIZE) ? 1 : 0);
    cli_hash_finish(&key);
    return key;
}

/* In the child: the program's main() from the shared object, against the runtime in this executable. */
static int
cli_enter(const char *path, const cli_options *o)
{
    int (*entry)(int argc, char **argv);
    void *symbol;
    void *object = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (object == NULL) {
        cli_say("cannot load the compiled program: %s", dlerror());
        return CLI_USAGE;
    }
    symbol = dlsym(object, "main");
    if (symbol == NULL) {
        cli_say("cannot start the compiled program: %s", dlerror());
        return CLI_USAGE;
    }
    memcpy(&entry, &symbol, sizeof entry);      /* why: no cast between data and code pointers in ISO C */
    return entry(o->n_arguments, o->arguments);
}

/* Runs a compiled program in a child process; its exit status as a shell would give it. */
static int
cli_start_program(const char *path, const cli_options *o)
{
    double start = cli_clock(NULL);
    pid_t child;
    int status;
    fflush(stdout);
    fflush(stderr);
    cli_hold_signals();
    child = fork();
    if (child < 0) {
        cli_say("cannot start a process: %s", strerror(errno));
        return CLI_USAGE;
    }
    if (child == 0) {
        cli_default_signals();
#if defined(__linux__)
        prctl(PR_SET_PDEATHSIG, SIGKILL);
#endif
        if (cli_given(o, CLI_OPT_THREADS)) {
            setenv("NEURO_THREADS", o->values[CLI_OPT_THREADS], 1);
        }
        if (!cli_given(o, CLI_OPT_SANITIZE)) {
            exit(cli_enter(path, o));
        }
        execv(path, o->arguments);
        cli_say("cannot start the compiled program: %s", strerror(errno));
        exit(CLI_USAGE);
    }
    status = cli_wait(child);
    if (cli_given(o, CLI_OPT_TIME)) {
        cli_print_time("the program", cli_clock(NULL) - start);
    }
    return cli_program_status(status);
}

/* Runs the cached program `path` if it is there; its status goes to *status. */
static bool
cli_run_cached(const cli_options *o, const char *path, int *status)
{
    cli_entry entry;
    cli_bytes words;
    if (path == NULL || !cli_cache_get(path, &entry)) {
        return false;
    }
    words = o->color ? entry.color : entry.plain;
    if (words.len > 0 && cli_given(o, CLI_OPT_STRICT)) {
        cli_text_free(&entry.file);
        return false;
    }
    fwrite(words.data, 1, words.len, stderr);
    cli_text_free(&entry.file);
    utimensat(AT_FDCWD, path, NULL, 0);
    *status = cli_start_program(path, o);
    return true;
}

/* Keeps the program that was just made as the entry `path`. */
static void
cli_keep_program(const char *cache, const char *path, const char *made, cli_program *p)
{
    cli_text bytes, plain, color;
    memset(&bytes, 0, sizeof bytes);
    memset(&plain, 0, sizeof plain);
    memset(&color, 0, sizeof color);
    cli_render(p, NEURO_RENDER_PLAIN, &plain);
    cli_render(p, NEURO_RENDER_COLOR, &color);
    if (cli_read(made, SIZE_MAX, &bytes) == 0) {
        cli_cache_put(path, &bytes, &plain, &color);
        cli_cache_trim(cache);
    }
    cli_text_free(&color);
    cli_text_free(&plain);
    cli_text_free(&bytes);
}

/* Compiles, keeps and runs. `path` is the cache entry to make, or NULL. */
static int
cli_run_new(const cli_options *o, cli_work *w, const char *cache, const char *path, cli_program *p)
{
    neuro_compile_desc desc;
    char *made;
    int status;
    memset(&desc, 0, sizeof desc);
    desc.line_directives = cli_given(o, CLI_OPT_SANITIZE);
    status = cli_compile_file(o, &desc, p);
    if (status != CLI_OK || !cli_has_main(p, o->files[0])) {
        return status != CLI_OK ? status : CLI_PROGRAM;
    }
    w->shared = !cli_given(o, CLI_OPT_SANITIZE);
    w->directory = cli_make_directory();
    if (w->directory == NULL || !cli_make(w, p, !w->shared)) {
        return CLI_USAGE;
    }
    made = cli_work_path(w, w->stem, ".out");
    if (path != NULL) {
        cli_keep_program(cache, path, made, p);
    }
    cli_program_free(p);
    status = cli_start_program(made, o);
    free(made);
    return status;
}

/* neuro run: from the cache, else compiled. The C compiler is looked for first, as it is part of the cache's key. */
static int
cli_run(const cli_options *o)
{
    cli_program p;
    cli_work w;
    char *cache = NULL;
    char *path = NULL;
    int status = CLI_USAGE;
    memset(&p, 0, sizeof p);
    memset(&w, 0, sizeof w);
    w.o = o;
    w.stem = cli_stem(o->files[0]);
    if (cli_read_source(o->files[0], &p.source) && cli_find_compiler(o, &w.cc)) {
        cache = cli_cache_directory();
        if (cache != NULL) {
            cli_hash key = cli_run_key(o, &w.cc, &p.source);
            path = cli_cache_path(cache, &key, cli_given(o, CLI_OPT_SANITIZE) ? "exe" : "so");
        }
        if (!cli_run_cached(o, path, &status)) {
            status = cli_run_new(o, &w, cache, path, &p);
        }
    }
    cli_program_free(&p);
    cli_work_free(&w);
    free(path);
    free(cache);
    return status;
}

/* Where `build` puts its result: -o, else hello or libhello.so here. */
static char *
cli_output_name(const cli_options *o, const char *stem)
{
    if (cli_given(o, CLI_OPT_OUTPUT)) {
        return cli_copy(o->values[CLI_OPT_OUTPUT]);
    }
#if defined(__APPLE__)
    return cli_given(o, CLI_OPT_SHARED) ? cli_join("lib", stem, ".dylib", (char *)NULL) : cli_copy(stem);
#else
    return cli_given(o, CLI_OPT_SHARED) ? cli_join("lib", stem, ".so", (char *)NULL) : cli_copy(stem);
#endif
}

/* Whether writing to `path` would destroy the source; says so. */
static bool
cli_is_source(const char *path, const char *source)
{
    struct stat a, b;
    if (stat(path, &a) != 0 || stat(source, &b) != 0 || a.st_dev != b.st_dev || a.st_ino != b.st_ino) {
        return false;
    }
    cli_say("the result would overwrite the program '%s': name another file with -o", source);
    return true;
}

/* Makes the program and moves it to its place. */
static int
cli_build_work(const cli_options *o, cli_work *w, cli_program *p)
{
    char *output = cli_output_name(o, w->stem);
    char *made = NULL;
    int status = CLI_USAGE;
    w->directory = cli_is_source(output, o->files[0]) ? NULL : cli_make_directory();
    if (w->directory != NULL && cli_make(w, p, true)) {
        int error;
        made = cli_work_path(w, w->stem, ".out");
        error = cli_move(made, output);
        if (error != 0) {
            cli_say("cannot write '%s': %s", output, strerror(error));
        }
        status = error == 0 ? CLI_OK : CLI_USAGE;
    }
    free(made);
    free(output);
    return status;
}

static int
cli_build(const cli_options *o)
{
    neuro_compile_desc desc;
    cli_program p;
    cli_work w;
    int status;
    memset(&desc, 0, sizeof desc);
    memset(&p, 0, sizeof p);
    memset(&w, 0, sizeof w);
    w.o = o;
    w.shared = cli_given(o, CLI_OPT_SHARED);
    w.stem = cli_stem(o->files[0]);
    desc.as_library = w.shared;
    desc.line_directives = cli_given(o, CLI_OPT_SANITIZE);
    status = cli_compile_file(o, &desc, &p);
    if (status == CLI_OK && !w.shared && !cli_has_main(&p, o->files[0])) {
        status = CLI_PROGRAM;
    }
    if (status == CLI_OK) {
        status = cli_find_compiler(o, &w.cc) ? cli_build_work(o, &w, &p) : CLI_USAGE;
    }
    cli_program_free(&p);
    cli_work_free(&w);
    return status;
}

/* Writes a text to a file, or to standard output for NULL. */
static int
cli_write_output(const cli_options *o, const char *path, const char *text, size_t len)
{
    int error;
    if (path == NULL) {
        fwrite(text, 1, len, stdout);
        return CLI_OK;
    }
    if (cli_is_source(path, o->files[0])) {
        return CLI_USAGE;
    }
    error = cli_write(path, text, len, 0666);
    if (error != 0) {
        cli_say("cannot write '%s': %s", path, strerror(error));
        return CLI_USAGE;
    }
    return CLI_OK;
}

static int
cli_emit(const cli_options *o)
{
    neuro_compile_desc desc;
    cli_program p;
    size_t len;
    const char *text;
    int status;
    memset(&desc, 0, sizeof desc);
    memset(&p, 0, sizeof p);
    desc.as_library = cli_given(o, CLI_OPT_HEADER);
    desc.line_directives = cli_given(o, CLI_OPT_LINE);
    status = cli_compile_file(o, &desc, &p);
    if (status == CLI_OK) {
        text = neuro_c_text(p.compilation, &len);
        status = cli_write_output(o, o->values[CLI_OPT_OUTPUT], text, len);
    }
    if (status == CLI_OK && cli_given(o, CLI_OPT_HEADER)) {
        text = neuro_header_text(p.compilation, &len);
        status = cli_write_output(o, o->values[CLI_OPT_HEADER], text, len);
    }
    cli_program_free(&p);
    return status;
}

/* The codes with their titles, which are the first lines of the explanations. */
static void
cli_list_codes(void)
{
    for (int i = 0;; i++) {
        const char *code = neuro_explain_code(i);
        const char *text = code != NULL ? neuro_explain(code) : NULL;
        if (text == NULL) {
            return;
        }
        printf("%.*s\n", (int)strcspn(text, "\n"), text);
    }
}

static int
cli_explain(const cli_options *o)
{
    int status = CLI_OK;
    if (o->n_files == 0) {
        cli_list_codes();
    }
    for (int i = 0; i < o->n_files; i++) {
        char *code = cli_copy(o->files[i]);
        const char *text;
        if (code[0] == 'e' || code[0] == 'w') {
            code[0] = (char)(code[0] - 'a' + 'A');
        }
        text = neuro_explain(code);
        if (text != NULL) {
            printf("%s%s%s", i > 0 ? "\n" : "", text, text[strlen(text) - 1] == '\n' ? "" : "\n");
        } else {
            cli_say("there is no code '%s'; `neuro explain` lists them", o->files[i]);
            status = CLI_USAGE;
        }
        free(code);
    }
    return status;
}

/* ------------------------------------------------------------------------------------- */
//@@ main

static int
cli_find_command(const char *name)
{
    for (int i = 0; i < CLI_N_COMMANDS; i++) {
        if (strcmp(cli_commands[i].name, name) == 0) {
            return i;
        }
    }
    return -1;
}

/* argv[1] is no command: help, the version, or a mistake. */
static int
cli_no_command(int argc, char **argv)
{
    const char *word = argc > 1 ? argv[1] : NULL;
    if (word == NULL) {
        cli_help(stderr);
        return CLI_USAGE;
    }
    if (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0) {
        cli_help(stdout);
        return CLI_OK;
    }
    if (strcmp(word, "--version") == 0) {
        printf("neuro %s\n", NEURO_VERSION_TEXT);
        return CLI_OK;
    }
    if (strlen(word) > 3 && strcmp(word + strlen(word) - 3, ".nr") == 0) {
        cli_say("'%s' is a file, not a command; did you mean `neuro run %s`?", word, word);
    } else {
        cli_say("there is no command '%s'; `neuro --help` lists them", word);
    }
    return CLI_USAGE;
}

/* Everything was written: a full disk or a closed pipe is no success. */
static int
cli_finish(int status)
{
    if (fflush(stdout) != 0 || ferror(stdout)) {
        cli_say("cannot write standard output: %s", strerror(errno));
        return status == CLI_OK ? CLI_USAGE : status;
    }
    return status;
}

int
main(int argc, char **argv)
{
    cli_options o;
    int command = argc > 1 ? cli_find_command(argv[1]) : -1;
    int status = CLI_USAGE;
    if (command < 0) {
        return cli_finish(cli_no_command(argc, argv));
    }
    memset(&o, 0, sizeof o);
    o.command = (cli_command)command;
    if (argc > 2 && (strcmp(argv[2], "--help") == 0 || strcmp(argv[2], "-h") == 0)) {
        cli_command_help(stdout, o.command);
        return cli_finish(CLI_OK);
    }
    if (cli_parse(&o, argc, argv)) {
        status = cli_finish(cli_commands[command].function(&o));
    }
    cli_give_in();
    return status;
}
