/* The texts are short on purpose: they are sent with every call. Each line is whole by itself.
 *
 * P  the PATH that was found: programs are looked for in more places, ours is started with what was there
 * u  the uid        S  the end of the directory's name for it      N  its mounts without execution
 * r  runs the program as anybody would        B  runs a program, or BusyBox's of that name        D  removes
 * a file */
#include "inject/script.h"

#include "settle/settle.h"

static const char prelude[] = "P=$PATH;PATH=${PATH:+$PATH:}/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin\n"
                              "g=$(umask);r(){ (umask $g;PATH=$P;exec \"$@\");}\n";

static const char remover[] = "B(){ \"$@\"||busybox \"$@\";}\n"
                              "D(){ B rm -f \"$1\"||:>|\"$1\";}\n";

/* A: root alone can change what leads to a path: somebody else could put something else into the place of a
 * file of ours. Not asked where the root directory isn't ours, as in a user namespace. */
static const char ancestors[] =
    "A(){ e=$1;while [ \"$u\" = 0 -a -O / -a \"$e\" ];do e=${e%/*};[ -O \"$e/\" ]||return;done;}\n";

static const char whoami[] =
    "u=$(id -u)||u=${EUID:-$UID}\n"
    "[ \"$u\" ]||while read -r a b c d;do case $a in Uid:)u=$c;;esac;done</proc/self/status\n"
    "S=;[ \"$u\" = 0 ]||S=-$u\n";

/* L: reads what is mounted, which takes a shell as long as all the rest: M mounts that are worth a try, N
 * those that allow no execution. */
static const char mounts[] =
    "M=;N=' ';L(){ echo \"a -\";[ -r /proc/mounts ]&&while read -r a b c d e;do case $c in "
    "tmpfs|ramfs|overlay|ext*|xfs|btrfs|zfs|"
    "f2fs|nfs*|9p|fuse*|virtiofs|bcachefs)case $b in "
    "/dev|*\\\\*)continue;;esac;case ,$d, in *,noexec,*)N=\"$N$b \";;"
    "*,ro,*);;*)M=\"$M $b\";;esac;;esac;done</proc/mounts;}\n";

static const char facts[] =
    "w(){ echo;echo " SCRIPT_MARK
    ";echo \"u $u\";if s=$(uname -s);then echo \"s $s\";echo \"m $(uname -m)\";else "
    "for a in /proc/self/exe /bin/sh;do [ -r $a ]&&IFS= read -r e<$a&&break;done;echo \"e $e\";fi;"
    "for a in /etc/os-release /usr/lib/os-release;do [ -r $a ]&&{ while read -r b;do case $b in "
    "ID=*|VERSION_ID=*|"
    "PRETTY_NAME=*)echo \"o $b\";;esac;done<$a;break;};done;"
    "for a in /lib/ld-* /lib64/ld-*;do [ -e \"$a\" ]&&echo \"l $a\";done;}\n";

/* t PLACE...: a directory of ours in each. y DIR, to be defined before, does what is wanted with it. F: one
 * of the first two can be written to, and the mounts don't matter yet. */
static const char places[] =
    "t(){ for p do [ \"$G\" ]||[ ! -d \"$p\" ]||[ \"${p#/}\" = \"$p\" ]||y \"${p%/}/" SETTLE_DIR
    "$S\";done;}\n"
    "T(){ t /opt /usr/local;[ \"$F$M\" ]||L;t /var/tmp /run /tmp /dev/shm \"/run/user/$u\" "
    "\"$HOME\" \"$TMPDIR\" $M \"$PWD\" / /dev;}\n";

/* C: what copies stdin to stdout. q: makes the directory d, by m; Q: the topmost one that had to be made,
 * which U removes again, with those below it. v: makes the file f, which has not been there. k: its size. */
static const char writer[] =
    "for a in cat dd tee 'busybox cat';do command -v ${a% cat}>&2&&{ C=$a;break;};done;"
    "[ \"$C\" ]||{ echo h cat;exit;}\n"
    "umask 077\n"
    "k(){ s=$(stat -c %s \"$f\"||wc -c<\"$f\");}\n"
    "U(){ while [ \"$Q\" ]&&{ rmdir \"$d\"||[ ! -e \"$d\" ];}&&[ \"$d\" != \"$Q\" ];do d=${d%/*};done;}\n"
    "m(){ [ -d \"$1/\" ]||{ m \"${1%/*}\"&&{ B mkdir \"$1\"||[ -d \"$1\" ];};};}\n"
    "q(){ Q=;[ \"$d\" != \"$W\" ]||Q=$w;e=$d;while [ \"$e\" ]&&[ ! -d \"$e\" ];do Q=$e;e=${e%/*};done;"
    "a=x;m \"$d\"&&case $u$d in 0/*|*" SETTLE_DIR "*)a=o;[ -O \"$d\" -a ! -h \"$d\" ]&&A \"$d\";;esac"
    "&&return;echo \"$a $d\";U;return 1;}\n"
    "v(){ (set -C;:>\"$f\")&&return;U;return 1;}\n";

/* p DIR: writes the file there and has it settle. o: the file that has the bytes already; i: hands them out.
 * h: sets the mode, or takes it from the shell's own file. z: says whether the file system is mounted without
 * execution. It prints a letter and the directory for each that didn't do: o somebody else's, x not to be
 * written to, f full, c cut short, r not run, with the exit status; and h with a program that is missing.
 * Y: gives this directory up; X: all of them. */
static const char placer[] =
    "h(){ B chmod 700 \"$f\"||{ cp /bin/sh \"$f.x\"&&$C<\"$f\">|\"$f.x\"&&{ D "
    "\"$f\";f=$f.x;};};}\n"
    "z(){ l=;m=;while read -r a b c e q;do case $d/ in \"${b%/}\"/*)[ ${#b} -lt ${#m} ]||{ "
    "m=$b;l=$e;};;esac;done"
    "</proc/mounts;case ,$l, in *,noexec,*)echo noexec;;esac;}\n"
    "Y(){ D \"$f\";U;}\n"
    "X(){ Y;exit;}\n"
    "p(){ d=$1;f=$d/$t;shift;q||return;v||{ echo \"x $d\";return;};"
    "if [ \"$o\" ];then $C<\"$o\">|\"$f\";else i>|\"$f\";fi||{ echo \"f $d\";Y;[ \"$o\" ]||exit;return;};"
    "k;[ \"$o\" ]||[ -z \"$s\" ]||[ $s -eq $Z ]||{ echo \"c $d\" $s;X;};"
    "h||{ echo h chmod;X;};"
    "r \"$f\" settle --at \"$f\" --sums $H --name \"$n\" ${Q:+--made \"$Q\"} \"$@\"<&-;s=$?;"
    "case $s in 0)D \"$o\";exit;;3)D \"$o\";X;;esac;echo \"r $d\" $s $(z);"
    "if [ \"$o\" ];then Y;else o=$f;O=$d;R=$Q;fi;}\n"
    "trap 'D \"$f\";D \"$o\";exit 1' 1 2 13 15\n";

void script_shell(struct argv *out)
{
    argv_add(out, "/bin/sh");
    argv_add(out, "-c");
    argv_add(out, "while IFS= read -r l&&[ \"$l\" != . ];do eval \"$l\";done;main");
}

static void assign(struct buf *out, const char *name, const char *value)
{
    buf_addf(out, "%s=", name);
    argv_quote(out, value ? value : "");
    buf_addc(out, '\n');
}

/* `--links DIR`, as words of a command. */
static void add_links(struct buf *out, const struct script_options *o)
{
    if (o->links) {
        buf_adds(out, " --links ");
        argv_quote(out, o->links);
    }
}

static void begin(struct buf *out, const struct script_options *o)
{
    buf_adds(out, prelude);
    assign(out, "n", o->name);
    assign(out, "H", o->sums);
}

/* Goes through all places, or the one that was named. */
static void visit(struct buf *out, const struct script_options *o)
{
    if (!o->dir) {
        buf_adds(out, o->everywhere ? "L;T" : "T");
        return;
    }
    buf_adds(out, "p=/;y ");
    argv_quote(out, o->dir);
}

void script_recon(struct buf *out, const struct script_options *o, enum script_after after)
{
    begin(out, o);
    buf_adds(out, whoami);
    buf_adds(out, ancestors);
    buf_adds(out, mounts);
    buf_adds(out, facts);
    buf_adds(out, "x(){ d=$1;f=$d/$n;[ -f \"$f\" ]&&[ -x \"$f\" ]&&[ ! -h \"$f\" ]&&[ ! -h \"$d\" ]&&if [ -O "
                  "\"$f\" ];then "
                  "[ -O \"$d\" ]&&A \"$d\";else [ \"$u\" != 0 ]&&[ ! -w \"$f\" ]&&[ ! -w \"$d\" "
                  "];fi||return;echo \"b $f\";"
                  "r \"$f\" settle --at \"$f\" --sums $H");
    add_links(out, o);
    buf_adds(out, "<&-&&G=$f;}\n");
    buf_adds(out, places);
    buf_adds(out, "y(){ x \"$1\";[ ! -w \"$p\" ]||case $N in *\" $p \"*)echo \"n $1\";;*)F=1;echo \"w "
                  "$1\";;esac;}\nmain(){ w;");
    visit(out, o);
    buf_adds(out, ";echo " SCRIPT_END);
    if (after == SCRIPT_CALLS)
        buf_adds(out, ";[ \"$G\" ]&&{ echo " SCRIPT_CALL ";r \"$G\" exec --whole;}");
    if (after == SCRIPT_GOES_ON)
        buf_adds(
            out,
            ";[ \"$G\" ]&&return;main(){ :;};PATH=$P;while IFS= read -r l&&[ \"$l\" != . ];do eval \"$l\";"
            "done;main");
    buf_adds(out, ";}\n.\n");
}

void script_piece(struct buf *out, const struct script_options *o, const char *dir, int n)
{
    begin(out, o);
    assign(out, "u", o->uid);
    buf_adds(out, ancestors);
    buf_adds(out, remover);
    buf_adds(out, writer);
    assign(out, "d", dir);
    assign(out, "t", o->temporary);
    buf_addf(out, "f=$d/$t.%d\nmain(){ q;D \"$f\";v;$C>|\"$f\";k;echo \"k\" $s;echo \"q $Q\";}\n.\n", n);
}

void script_clean(struct buf *out, const struct script_options *o, const struct argv *dirs)
{
    begin(out, o);
    buf_adds(out, remover);
    assign(out, "t", o->temporary);
    buf_adds(out, "y(){ for f in \"$1/$t\"*;do [ ! -e \"$f\" ]||D \"$f\";done;"
                  "case $1 in *" SETTLE_DIR "*)rmdir \"$1\";;esac;}\nmain(){ :");
    for (size_t i = 0; i < dirs->n; i++) {
        buf_adds(out, ";y ");
        argv_quote(out, dirs->words[i]);
    }
    buf_adds(out, ";}\n.\n");
}

/* One that can't be run, or knows no removal, is removed as any file. */
void script_eject(struct buf *out, const struct script_options *o)
{
    begin(out, o);
    buf_adds(out, whoami);
    buf_adds(out, mounts);
    buf_adds(out, places);
    buf_adds(out, remover);
    buf_adds(out, "y(){ d=$1;f=$d/$n;for a in \"$d\"/" SETTLE_TEMPORARY "*;do [ ! -O \"$a\" ]||D \"$a\";done;"
                  "[ -f \"$f\" ]&&[ ! -h \"$f\" ]&&[ -O \"$f\" ]||return;echo \"b $f\";"
                  "r \"$f\" settle --at \"$f\" --remove<&-;case $? in 0);;1)echo \"e $f\";;"
                  "*)D \"$f\";D \"$d/.$n.inject\";rmdir \"$d\";;esac;}\n");
    buf_adds(out, "main(){ echo " SCRIPT_MARK ";");
    visit(out, o);
    buf_adds(out, ";echo " SCRIPT_END ";}\n.\n");
}

void script_place(struct buf *out, const struct script_options *o, const struct argv *dirs, size_t size,
                  int pieces, const char *made)
{
    begin(out, o);
    assign(out, "u", o->uid);
    assign(out, "t", o->temporary);
    buf_addf(out, "Z=%zu\n", size);
    buf_adds(out, ancestors);
    buf_adds(out, remover);
    buf_adds(out, writer);
    if (pieces > 0) {
        assign(out, "W", dirs->words[0]);
        assign(out, "w", made);
        buf_addf(out, "i(){ a=0;while [ $a -lt %d ];do $C<\"$W/$t.$a\"||return;a=$((a+1));done;}\n", pieces);
        buf_addf(out, "E(){ a=0;while [ $a -lt %d ];do D \"$W/$t.$a\";a=$((a+1));done;}\ntrap E 0\n", pieces);
    } else {
        buf_adds(out, "i(){ $C;}\n");
    }
    buf_adds(out, placer);
    buf_adds(out, "main(){ o=;");
    for (size_t i = 0; i < dirs->n; i++) {
        buf_adds(out, "p ");
        argv_quote(out, dirs->words[i]);
        add_links(out, o);
        buf_addc(out, ';');
    }
    buf_adds(out, "[ \"$o\" ]&&{ D \"$o\";d=$O;Q=$R;U;};}\n.\n");
}
