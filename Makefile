# toolbox: one static binary per architecture. `make help` explains every target.
#
# Sources are found by wildcard: a new file needs no line here.

VERSION := 0.1.0

# ---- this machine, and the one to build for ----------------------------------------------------------------

machine_x86_64 := amd64
machine_aarch64 := arm64
HOST_ARCH := $(machine_$(shell uname -m))
ARCH ?= $(HOST_ARCH)

# Each architecture: as Debian names it, and its compiler; what else its compiler has to be told.
ARCHES := amd64 arm64 armv7 i386 ppc64le riscv64 s390x
debian_armv7 := armhf
debian_ppc64le := ppc64el
debian := $(or $(debian_$(ARCH)),$(ARCH))
triplet_amd64 := x86_64-linux-gnu
triplet_arm64 := aarch64-linux-gnu
triplet_armv7 := arm-linux-gnueabihf
triplet_i386 := i686-linux-gnu
triplet_ppc64le := powerpc64le-linux-gnu
triplet_riscv64 := riscv64-linux-gnu
triplet_s390x := s390x-linux-gnu
flags_ppc64le := -mlong-double-64
# The linker of Debian 12 crashes over this one's debug sections.
link_riscv64 := -Wl,--strip-debug
triplet := $(triplet_$(ARCH))
ifeq ($(triplet),)
$(error ARCH must be one of $(ARCHES), not '$(ARCH)')
endif

CC := gcc
CLANG := clang
ifeq ($(ARCH),$(HOST_ARCH))
STATIC_CC := $(CC)
KERNEL := /usr/include
else
TOOLS := $(triplet)-
STATIC_CC := $(triplet)-gcc
KERNEL := /usr/$(triplet)/include
endif
STRIP := $(TOOLS)strip
OBJCOPY := $(TOOLS)objcopy
READELF := $(TOOLS)readelf

# ---- what there is -----------------------------------------------------------------------------------------

BUILD := build
B := $(BUILD)/$(if $(GUEST),guest/)$(ARCH)
UNIT := $(BUILD)/unit
SANITIZE := $(BUILD)/sanitize
FUZZ := $(BUILD)/fuzz
DEPS := $(BUILD)/deps
MUSL := $(DEPS)/musl-$(debian)

# core/static/ is for the static binary alone.
SRC := $(filter-out $(if $(filter amd64,$(ARCH)),,core/static/start.c) $(if $(GUEST),applets/commands/confine/confine_command.c applets/tools/mcp/mcp_remote% applets/commands/transfer/% applets/host/cp/%),$(sort $(wildcard core/*.c core/static/*.c rpc/*.c \
    applets/*.c applets/*/*/*.c)))
LIB_SRC := $(filter-out applets/main.c core/static/%,$(SRC))
UNIT_TESTS := $(basename $(notdir $(sort $(wildcard test/unit/test_*.c))))
FUZZ_TARGETS := $(basename $(notdir $(sort $(wildcard test/fuzz/fuzz_*.c))))

# What main and the server reach by themselves, not through the tables of applets and tools: scripts/link-order puts it in
# front, and `make check` holds it to that.
HOT := $(filter-out core/signature.c core/tls.c core/tls_server.c core/unzstd.c core/confine% core/expression%,$(wildcard core/*.c core/static/*.c)) rpc/% applets/main.c \
    applets/command.c applets/tool.c applets/usage.c applets/usage_text.c applets/words.c applets/tools/web_browser/profile.c \
    $(addprefix applets/commands/exec/,caller.c exec.c route.c) \
    $(addprefix applets/commands/server/,keeper_service.c keeper_move.c other_builds.c server%)
HOT_VENDOR := platform_util sha256 cJSON

# What runs behind relocate_all() alone (core/relocate.h): amd64's binary holds their constants packed. `make check` holds the others to
# that: what answers in the process that was asked, what the server does for a tool when it starts, ends and finds a keeper.
PACKED := $(filter-out %_methods.c %_params.c core/confine_name.c %/profile.c %/job_shelf.c %/job_stored.c %/job_text.c %/job_record.c %/exec_remote_answer.c \
    %/doctor.c %/settle_record.c,applets/install_legacy.c applets/host/release/release.c \
    $(wildcard $(foreach d,confine mcp_serve model_proxy settle methods transfer,applets/commands/$d/*.c) \
    applets/host/cp/*.c applets/tools/file/file.c applets/tools/file/file_call.c applets/tools/text_editor/text_editor.c \
    applets/commands/server/adopt.c applets/commands/server/upgrade.c \
    core/confine*.c $(foreach d,bash_session computer doctor exec_remote mcp web_browser,applets/tools/$d/*.c)))

# Code that is packed as well, by its parts (core/code_parts.def): what runs behind code_unpack() alone. To the linker it is data.
CODE_browser := $(filter-out %_methods.c %_params.c %/profile.c %/find.c %/web_browser.c %/web_commands.c %/web_behind.c,$(wildcard applets/tools/web_browser/*.c))
CODE_commands := $(addprefix applets/tools/,$(addsuffix .c,bash_session/bash_session bash_session/bash_session_attach bash_session/bash_session_call bash_session/bash_session_cast \
    bash_session/bash_session_cut bash_session/bash_session_run exec_remote/exec_remote \
    $(if $(GUEST),,file/file file/file_call) exec_remote/exec_remote_logs exec_remote/exec_remote_run exec_remote/exec_remote_tty mcp/mcp mcp/mcp_client mcp/mcp_print $(if $(GUEST),,mcp/mcp_remote mcp/mcp_remote_exchange) web_browser/web_behind \
    text_editor/text_editor web_browser/web_browser web_browser/web_commands $(if $(GUEST),,computer/computer)))
CODE_bridge := $(addprefix applets/tools/mcp/mcp_,$(addsuffix .c,bridge lines message notes odd process requests))
CODE_edit := $(filter-out $(addprefix applets/tools/text_editor/,$(addsuffix .c,text_editor text_editor_methods edit_beside edit_encoding edit_file \
    edit_path edit_text)),$(wildcard applets/tools/text_editor/*.c))
CODE_outlet := $(wildcard applets/host/outlet/*.c)
CODE_settle := $(addprefix applets/commands/settle/,$(addsuffix .c,placement settle_others settle_remove settle_server unpack))
CODE_computer := $(filter-out %_methods.c %_params.c %/computer.c,$(wildcard applets/tools/computer/*.c))
CODE_probe := $(filter-out %/probe.c %/probe_platform.c,$(wildcard applets/commands/probe/*.c))
CODE_tools = $(filter-out $(CODE_commands) $(CODE_bridge) $(CODE_browser) $(CODE_computer),$(filter $(foreach d,bash_session exec_remote \
    mcp,applets/tools/$d/%.c),$(PACKED)))
CODE_tls = $(addprefix applets/host/release/,fetch_file.c fetch_get.c fetch_progress.c release_fetch.c) core/signature.c core/tls.c core/tls_server.c \
    $(filter-out $(addprefix vendor/,$(addsuffix .c,$(HOT_VENDOR) $(ZSTD))),$(patsubst %,vendor/%.c,$(VENDOR)))
CODE_confine := $(filter-out core/confine_name.c,$(wildcard core/confine*.c)) applets/commands/confine/policy.c applets/commands/confine/policy_check.c \
    applets/commands/confine/walls_there.c applets/commands/confine/server_policy.c applets/commands/confine/confine_command.c
CODE_transfer := $(filter-out %/transfer.c %/complain.c %/cp.c,$(wildcard applets/commands/transfer/*.c applets/host/cp/*.c))
CODE_file := $(filter-out %_methods.c $(addprefix applets/tools/file/,$(addsuffix .c,file file_call file_path file_read)),$(wildcard applets/tools/file/*.c)) \
    core/expression.c core/expression_find.c
CODE_mcp := $(if $(GUEST),,applets/host/call/serve_in.c) $(filter-out %/mcp_serve.c,$(wildcard applets/commands/mcp_serve/*.c))
CODE_http := $(addprefix applets/commands/model_proxy/proxy_,address.c http.c events.c gate.c)
CODE_serve := $(addprefix applets/commands/model_proxy/,$(addsuffix .c,command_source limits rules serve_model tape upstream upstream_ask usage_count))
CODE_proxy := $(filter-out %/model_proxy.c $(CODE_http) $(CODE_serve),$(wildcard applets/commands/model_proxy/*.c))
CODE_zstd = $(patsubst %,vendor/%.c,$(ZSTD))
CODE_inject := $(addprefix applets/host/inject/,$(addsuffix .c,inject_copy inject_dir inject_doctor inject_many inject_place inject_recon \
    inject_verdict inject_with injection open_in pack script))
code_parts = $(if $(filter amd64,$(ARCH)),bridge browser commands computer edit file http mcp probe tools zstd proxy $(if $(GUEST),,confine inject outlet settle transfer tls) serve)
code_objects = $(patsubst %.c,$(B)/%.o,$(CODE_$1))
packed_code = $(foreach p,$(code_parts),$p: $(call code_objects,$p))
code_is_data = $(if $(filter $(foreach p,$(code_parts),$(call code_objects,$p)),$1),&& $(OBJCOPY) --set-section-flags '.text*=alloc$(comma)readonly$(comma)data' $1)

# The texts of --help of the applets that are in the binary.
host_applets := $(shell awk '/ifndef TOOLBOX_GUEST/ { host = 1 } /endif/ { host = 0 } host && gsub(/^(PACKED_)?APPLET\(|\).*/, "")' applets/applets.def)
USAGE := $(sort $(wildcard applets/*/*/*.usage))
USAGE := $(filter-out $(if $(GUEST),$(addprefix %/,$(addsuffix .usage,$(host_applets)))),$(USAGE))

# objects DIR SOURCES: with the foreign code
ZSTD := $(addprefix zstd/common/,entropy_common error_private fse_decompress xxhash zstd_common) \
    $(addprefix zstd/decompress/,huf_decompress zstd_ddict zstd_decompress zstd_decompress_block)
VENDOR := aes asn1parse asn1write base64 bignum bignum_core chacha20 chachapoly cipher cipher_wrap constant_time ecdh ecdsa ecp \
    ecp_curves gcm hkdf md oid pem pk pk_ecc pk_wrap pkparse platform platform_util poly1305 psa_crypto psa_crypto_aead \
    psa_crypto_cipher psa_crypto_client psa_crypto_driver_wrappers_no_static psa_crypto_ecp psa_crypto_hash psa_crypto_mac \
    psa_crypto_rsa psa_crypto_slot_management psa_util rsa rsa_alt_helpers sha256 sha512 ssl_ciphersuites ssl_client ssl_msg \
    ssl_tls ssl_tls12_client ssl_tls12_server ssl_tls13_client ssl_tls13_server ssl_tls13_generic ssl_tls13_keys x509 x509_crt cJSON $(ZSTD)
hot_objects = $(patsubst %.c,$1/%.o,$(filter $(HOT),$2)) $(patsubst %,$1/vendor/%.o,$(HOT_VENDOR))
other_objects = $(patsubst %.c,$1/%.o,$(filter-out $(HOT),$2)) $(patsubst %,$1/vendor/%.o,$(filter-out $(HOT_VENDOR),$(VENDOR)))
objects = $(hot_objects) $(other_objects)

# ---- flags -------------------------------------------------------------------------------------------------

WARN := -Wall -Wextra -Wpedantic -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wold-style-definition -Wundef -Wvla \
    -Wpointer-arith -Wwrite-strings -Wformat=2 -Wconversion -Wno-sign-conversion -Wdouble-promotion
LANG_FLAGS := -std=c11 -D_GNU_SOURCE

# -Os starts as fast as -O2 and is a tenth smaller, and -Oz, which gcc has since its version 12, another hundredth; link-time
# optimisation makes it larger. _FORTIFY_SOURCE does nothing with musl. No unwind tables: nothing unwinds. -g costs nothing: what is shipped is stripped,
# toolbox.full is for gdb. What is injected by others has a limit of 600 KB: its functions without an array of characters go without
# a canary, which is 25 KB.
SMALL := $(shell $(STATIC_CC) -Oz -E -x c - </dev/null >/dev/null 2>&1 && echo -Oz || echo -Os)
STATIC_FLAGS = $(flags_$(ARCH)) $(if $(GUEST),-DTOOLBOX_GUEST='"$(strip $(host_applets))"') $(SMALL) -g -fPIE -fvisibility=hidden -ffunction-sections -fdata-sections -fno-asynchronous-unwind-tables \
    -fno-unwind-tables -fstack-protector$(if $(GUEST),,-strong) -fstack-clash-protection \
    -nostdinc -isystem $(MUSL)/include -isystem $(GCC_INCLUDE) -isystem $(B)/kernel
GCC_INCLUDE := $(shell $(STATIC_CC) -print-file-name=include 2>/dev/null)
# Packed relocations (the linker has them for amd64) are 12 KB less, for 2 % more of start-up; read-only data in the segment
# of the code is 4 KB less and a page fault fewer, which more than makes up for it.
PACKED_amd64 := -z,pack-relative-relocs,
STATIC_LINK := -nostdlib -nostartfiles -static-pie \
    -Wl,--no-dynamic-linker,$(PACKED_$(ARCH))-z,noseparate-code,-z,text,-z,relro,-z,now,-z,noexecstack,--gc-sections,--build-id=none,-O1 $(link_$(ARCH))

DEBUG_FLAGS := -O1 -g -fno-omit-frame-pointer
SANITIZERS := -fsanitize=address,undefined -fno-sanitize-recover=all

# Calls run downwards only, applets -> rpc -> core, and each room sees no more than it may: the include path
# is the rule. What only measures sees none.
CJSON := -isystem $(DEPS)/cjson
# The decoder alone, in its smallest form.
ZSTD_FLAGS := -DDYNAMIC_BMI2=0 -DZSTD_DISABLE_ASM -DHUF_FORCE_DECOMPRESS_X1 -DHUF_DISABLE_FAST_DECODE -DZSTD_FORCE_DECOMPRESS_SEQUENCES_SHORT \
    -DZSTD_NO_INLINE -DZSTD_NO_INTRINSICS -DZSTD_STRIP_ERROR_STRINGS -DZSTD_LEGACY_SUPPORT=0 -DZSTD_TRACE=0 -DXXH_NO_XXH3
# In angle brackets: mbedtls has a file of that name itself.
MBEDTLS := -isystem $(DEPS)/mbedtls/include -isystem third_party -DMBEDTLS_CONFIG_FILE='<mbedtls_config.h>'
rooms = $(if $(filter-out test/bench/%,$1),-Icore) \
    $(if $(filter rpc/% applets/% test/%,$1),-Irpc) \
    $(if $(filter applets/% test/%,$1),-Iapplets) \
    $(if $(filter rpc/% %_methods.c test/%,$1),$(CJSON)) \
    $(if $(filter core/sha256.c core/signature.c core/tls.c core/tls_server.c,$1),$(MBEDTLS)) \
    $(if $(filter core/unzstd.c,$1),-isystem $(DEPS)/zstd) \
    $(if $(filter core/net.c,$1),-DMAY_RESOLVE) \
    $(if $(filter applets/usage_text.c,$1),-I$(B)) \
    $(if $(filter test/%,$1),-Wno-missing-prototypes,-include core/banned.h)

# ---- how things are made -----------------------------------------------------------------------------------

.DEFAULT_GOAL := all
.DELETE_ON_ERROR:
.SUFFIXES:
.SECONDARY:

# A short line for each step; V=1 shows the commands themselves, -s nothing.
Q := $(if $(V),,@)
QUIET := $(V)$(findstring s,$(firstword -$(MAKEFLAGS)))
MAKEFLAGS += --no-builtin-rules
say = @mkdir -p $(@D)$(if $(QUIET),,; printf '  %-6s %s\n' $1 $2)

.PHONY: FORCE
FORCE:

# remember TEXT: a file that changes only when TEXT does: flags, and the build id.
quote = '$(subst ','\'',$1)'
remember = @mkdir -p $(@D); printf '%s\n' $(call quote,$1) | cmp -s - $@ || printf '%s\n' $(call quote,$1) >$@

# The source id is derived from all that goes in, by name and content; the build id, which tells builds apart, from that and
# from what is built (core/version.h). Both stand on the one line of DIR/build_id.
BUILD_INPUTS := $(sort Makefile scripts/link-order scripts/link-packed $(wildcard third_party/* core/*.[ch] core/static/* core/*.def rpc/*.[ch] rpc/*.def \
    applets/*.[ch] applets/*.def applets/*/*/*.[ch] applets/*/*/*.def applets/*/*/*.usage applets/*/*/*.part))
build_id = $(shell source=$$({ echo '$(VERSION)'; cat $(DEPS)/manifest $(PUBLIC_KEY); LC_ALL=C sha256sum $(BUILD_INPUTS); } | \
    sha256sum | cut -c1-16); echo "$$source $$(printf '%s %s' "$$source" '$1' | sha256sum | cut -c1-16)")

# The key whose signature under a release is believed, if any: a file (PEM, ECDSA P-256).
PUBLIC_KEY ?=
public_key = $(if $(PUBLIC_KEY),$$(grep -v -e ----- $(PUBLIC_KEY) | tr -d '\n'))

# flavour DIR COMPILER FLAGS [FIRST]: how DIR/x.o comes from x.c (FIRST has to be there before)
define flavour
$1/flags: FORCE
	$$(call remember,$2 $(LANG_FLAGS) $(WARN) $3 $(if $(filter $1,$(B)),$(packed_code)))
$1/build_id: $(DEPS)/manifest FORCE
	$$(call remember,$$(call build_id,$(notdir $1)))
$1/applets/usage_text.o: $(B)/usage_packed.h
$1/%.o: %.c $1/flags $(DEPS)/manifest | $4
	$$(call say,CC,$$@)
	$(Q)$2 $(LANG_FLAGS) $(WARN) $3 $$(call rooms,$$<) -MMD -MP -c -o $$@ $$<$$(call code_is_data,$$@)
$1/core/version.o: core/version.c $1/flags $1/build_id | $4
	$$(call say,CC,$$@)
	$(Q)$2 $(LANG_FLAGS) $(WARN) $3 $$(call rooms,$$<) -DTOOLBOX_VERSION='"$(VERSION)"' \
	    -DTOOLBOX_SOURCE_ID="\"$$$$(cut -d' ' -f1 $1/build_id)\"" -DTOOLBOX_BUILD_ID="\"$$$$(cut -d' ' -f2 $1/build_id)\"" \
	    -DTOOLBOX_PUBLIC_KEY="\"$(subst $$,$$$$,$(public_key))\"" -MMD -MP -c -o $$@ $$<
$1/vendor/cJSON.o: $(DEPS)/manifest $1/flags | $4
	$$(call say,CC,$$@)
	$(Q)$2 $(LANG_FLAGS) -w $3 -DCJSON_HIDE_SYMBOLS -c -o $$@ $(DEPS)/cjson/cJSON.c
$1/vendor/zstd/%.o: $(DEPS)/manifest $1/flags | $4
	$$(call say,CC,$$@)
	@mkdir -p $$(@D)
	$(Q)$2 $(LANG_FLAGS) -w $3 $(ZSTD_FLAGS) -c -o $$@ $(DEPS)/zstd/$$*.c$$(call code_is_data,$$@)
$1/vendor/%.o: $(DEPS)/manifest $1/flags $(wildcard third_party/*.h) | $4
	$$(call say,CC,$$@)
	$(Q)$2 $(LANG_FLAGS) -w $3 $(MBEDTLS) -c -o $$@ $(DEPS)/mbedtls/library/$$*.c$$(call code_is_data,$$@)
-include $$(shell find $1 -name '*.d' 2>/dev/null)
endef

# A line @FILE stands for what is in there, @host:FILE where it is the whole binary.
$(B)/usage_packed.h: $(USAGE) $(wildcard applets/*/*/*.part) $(B)/build_id
	$(Q)awk '/^@host:/ { sub("host:", ""); if ("$(GUEST)") next } /^@/ { while ((getline line <substr($$0, 2)) > 0) print line; close(substr($$0, 2)); next } { print }' $(USAGE) | gzip -9n | od -An -v -tu1 | sed 's/ *\([0-9][0-9]*\)/\1,/g' >$@

# program FILE COMPILER OBJECTS FLAGS: how FILE is linked. A removed source or another flag changes the build
# id, and so version.o: no more is needed to link again.
define program
$1: $3
	$$(call say,LD,$$@)
	$(Q)$2 -o $$@ $3 $4
endef

# ---- the binary --------------------------------------------------------------------------------------------

# GUEST=1: without the applets that work on targets, and so without TLS: half the size, for what is injected by others.
HERE := $(if $(GUEST),,$(filter $(ARCH),$(HOST_ARCH)))

# ./toolbox is the one of build/ for this machine: what is built elsewhere or otherwise (BUILD=, ARCH=, GUEST=) stays there.
OWN := $(if $(filter build,$(BUILD)),$(if $(HERE),toolbox))
PROGRAM := $(or $(OWN),$(B)/toolbox)

all: $(PROGRAM) ## ./toolbox for this machine; ARCH=arm64 (or armv7, i386, …): build/ARCH/toolbox
.PHONY: all

ifneq ($(OWN),)
toolbox: $(B)/toolbox
	@cp $< $@.new && mv $@.new $@
endif

$(eval $(call flavour,$(B),$(STATIC_CC),$(STATIC_FLAGS),$(B)/kernel/asm))

# The kernel's headers come with the compiler's own packages; nothing else of this machine's is visible to the
# compiler.
$(B)/kernel/asm: | $(MUSL)/lib/libc.a
	@command -v $(STATIC_CC) >/dev/null || { echo 'no $(STATIC_CC) on this machine: scripts/setup test installs it' >&2; exit 1; }
	@mkdir -p $(B)/kernel
	@ln -sfn $(KERNEL)/linux $(B)/kernel/linux
	@ln -sfn $(KERNEL)/asm-generic $(B)/kernel/asm-generic
	@ln -sfn $(firstword $(wildcard $(KERNEL)/$(triplet)/asm) $(KERNEL)/asm) $@

$(MUSL)/lib/libc.a: | $(DEPS)/manifest
	@$(FETCH) $(debian)

# static_program FILE OBJECTS OTHERS [FLAGS]: FILE.full is FILE with its symbols. There are no constructors, and so none of the
# compiler's start files.
define static_program
$1.full: $2 $3 $5
	$$(call say,LD,$$@)
	$(Q)$(if $5,scripts/link-packed '$(TOOLS)' $$@ $5 )$(STATIC_CC) -o $$@ $(STATIC_LINK) -Wl,-Map=$1.map $4 $(if $5,-T $$@.ld $(MUSL)/lib/Scrt1.o,$(MUSL)/lib/rcrt1.o) $(MUSL)/lib/crti.o -L$(MUSL)/lib $2 -lc $3 $(if $5,$$@.packed.o) \
	    -Wl,--start-group -lc -lgcc -Wl,--end-group $(MUSL)/lib/crtn.o
$1: $1.full scripts/check-static
	@$(STRIP) -s -R .comment -o $$@.new $$<
	@scripts/check-static $(READELF) $(ARCH) $$@.new
	@mv $$@.new $$@
endef
comma := ,

# amd64's linker packs the list of relocations, which start.c reads, and so they can come in two parts there.
ORDER := $(if $(filter core/static/start.c,$(SRC)),$(B)/order.ld)
LATE := $(if $(ORDER),-Wl$(comma)--wrap=__libc_start_main)
$(B)/order.ld: scripts/link-order scripts/link-packed core/static/hot $(B)/build_id
	$(Q)scripts/link-order core/static/hot '$(patsubst %.c,$(B)/%.o,$(filter $(PACKED),$(SRC)))' \
	    '$(packed_code)' $(call hot_objects,$(B),$(SRC)) >$@

HEAP := -Wl,--wrap=malloc,--wrap=calloc,--wrap=realloc,--wrap=free
REFUSED := $(patsubst %,-Wl$(comma)--wrap=%,$(shell sed -n 's/^REFUSE(\(.*\))$$/\1/p' core/static/refused.c))
$(eval $(call static_program,$(B)/toolbox,$(call hot_objects,$(B),$(SRC)),$(call other_objects,$(B),$(SRC)),$(HEAP) $(REFUSED) $(LATE),$(ORDER)))
BENCH := $(patsubst test/bench/%.c,$(B)/bench/%,$(wildcard test/bench/*.c))
$(foreach b,$(BENCH),$(eval $(call static_program,$b,$(B)/test/bench/$(notdir $b).o)))

objs: $(call objects,$(B),$(SRC)) ## compile every source, link nothing
.PHONY: objs

# The budgets of the project: of the whole binary, and of what is injected by others. NOTE=1, for a release: what later ones are
# compared with.
size: $(B)/toolbox ## what the binary's bytes are spent on, and the guest's (GUEST=1), against the last release; fails over the budget
	@scripts/size $(if $(NOTE),--note) $(B)/toolbox $$((1024 * $(if $(GUEST),600,1024)))
	@$(if $(GUEST),,$(MAKE) -s GUEST=1 ARCH=$(ARCH) size)
.PHONY: size

PREFIX ?= /usr/local
install: $(PROGRAM) ## copy ./toolbox to $(DESTDIR)$(PREFIX)/bin
	install -D -m 755 $(PROGRAM) $(DESTDIR)$(PREFIX)/bin/toolbox
.PHONY: install

inspect-dropin: ## dist/inspect-dropin: what an installed inspect_ai injects into its sandboxes (TOOLS_VERSION=)
	@$(MAKE) -s GUEST=1 ARCH=amd64
	@$(MAKE) -s GUEST=1 ARCH=arm64
	@scripts/inspect-dropin $(addprefix --tools-version ,$(TOOLS_VERSION)) make dist/inspect-dropin
.PHONY: inspect-dropin

# ---- dependencies ------------------------------------------------------------------------------------------

FETCH = DEPS_DIR='$(DEPS_DIR)' DEB_MIRROR='$(DEB_MIRROR)' TOOLBOX_CACHE='$(TOOLBOX_CACHE)' third_party/fetch $(BUILD)

deps: $(DEPS)/manifest ## fetch cJSON, mbedtls, zstd and musl once (DEB_MIRROR=, DEPS_DIR=, TOOLBOX_CACHE=)
.PHONY: deps

$(DEPS)/manifest: third_party/pins third_party/fetch
	@$(FETCH)

# ---- tests -------------------------------------------------------------------------------------------------

PYTEST := /usr/bin/python3 -m pytest -p no:cacheprovider

test: ## install what is missing, then run every test (what CI runs)
	scripts/test
.PHONY: test

# unit_programs DIR COMPILER FLAGS: every unit test, with everything but main linked to it
define unit_programs
$(foreach t,$(UNIT_TESTS),$(eval $(call program,$1/$t,$2,$1/test/unit/$t.o $1/test/unit/leftovers.o $(call objects,$1,$(LIB_SRC)),$3 -lcmocka)))
endef

$(eval $(call flavour,$(UNIT),$(CC),$(DEBUG_FLAGS)))
$(call unit_programs,$(UNIT),$(CC),)

# For what was never set, which the address sanitizer doesn't see. Leaks are its matter.
valgrind: $(addprefix $(UNIT)/,$(UNIT_TESTS)) ## unit tests under valgrind
	@RUNNER='valgrind -q --error-exitcode=99 --leak-check=no' SECONDS_EACH=600 scripts/run-units $^
.PHONY: valgrind

model: ## the models of test/model, every order of their events (scripts/setup check)
	@test/model/run
.PHONY: model

unit: $(addprefix $(UNIT)/,$(UNIT_TESTS)) ## unit tests
	@scripts/run-units $^
.PHONY: unit

$(eval $(call flavour,$(SANITIZE),$(CC),$(DEBUG_FLAGS) $(SANITIZERS)))
$(eval $(call program,$(SANITIZE)/toolbox,$(CC),$(call objects,$(SANITIZE),applets/main.c $(LIB_SRC)),$(SANITIZERS)))
$(call unit_programs,$(SANITIZE),$(CC),$(SANITIZERS))
$(foreach t,$(FUZZ_TARGETS),$(eval $(call program,$(SANITIZE)/replay/$t,$(CC),$(SANITIZE)/test/fuzz/$t.o \
    $(SANITIZE)/test/fuzz/replay.o $(call objects,$(SANITIZE),$(LIB_SRC)),$(SANITIZERS))))

replay: $(addprefix $(SANITIZE)/replay/,$(FUZZ_TARGETS)) ## every input of the fuzzers' corpora once, under sanitizers
	@status=0; for t in $(FUZZ_TARGETS); do \
	    timeout 300 $(SANITIZE)/replay/$$t test/fuzz/corpus/$${t#fuzz_} && echo "ok - $$t" || { echo "not ok - $$t"; status=1; }; \
	done; exit $$status
.PHONY: replay

sanitize: $(SANITIZE)/toolbox $(addprefix $(SANITIZE)/,$(UNIT_TESTS)) replay ## unit and integration tests under ASan and UBSan
	@scripts/run-units $(addprefix $(SANITIZE)/,$(UNIT_TESTS))
	scripts/run-sanitized $(CURDIR)/$(SANITIZE)/toolbox $(PYTEST) test/integration
.PHONY: sanitize

# A library of all code, in which each function tells that it is entered. A test with one object of its own in front of it uses
# that one's functions instead of the library's, so it takes one compilation and a link of three files to try a mutant.
MUTANTS_DIR := $(BUILD)/mutants
MUTANTS_FLAGS := -O1 -fno-omit-frame-pointer -fPIC $(SANITIZERS) -finstrument-functions
$(eval $(call flavour,$(MUTANTS_DIR),$(CC),$(MUTANTS_FLAGS)))
$(eval $(call program,$(MUTANTS_DIR)/libsound.so,$(CC),$(MUTANTS_DIR)/test/mutants/reached.o $(MUTANTS_DIR)/test/unit/leftovers.o \
    $(call objects,$(MUTANTS_DIR),$(LIB_SRC)),$(SANITIZERS) -shared -Wl$(comma)-Map=$(MUTANTS_DIR)/map))

mutants: $(MUTANTS_DIR)/libsound.so $(patsubst %,$(MUTANTS_DIR)/test/unit/%.o,$(UNIT_TESTS)) ## make core/ and rpc/ wrong at MUTANTS=40 places (SEED=1, ONLY=core/buf, MUTANTS=0: all): do unit tests see it?
	@$(file >$(MUTANTS_DIR)/commands)$(foreach f,$(wildcard core/*.c rpc/*.c),$(file \
	    >>$(MUTANTS_DIR)/commands,$f $(CC) $(LANG_FLAGS) $(MUTANTS_FLAGS) $(call rooms,$f)))
	@nice /usr/bin/python3 test/mutants/run.py --most $(or $(MUTANTS),40) --seed $(or $(SEED),1) --only '$(ONLY)' $(MUTANTS_DIR)
.PHONY: mutants

# ---- faults ----------------------------------------------------------------------------------------------

# Call sites are told by their addresses: they have to be the same in every process, and no call may be a jump.
FAULTS := $(BUILD)/faults
FAULT_CALLS := sendmsg $(shell sed -n 's/^[CM][A-Z]*.[^,]*, \([a-z0-9_]*\),.*/\1/p' test/faults/calls.def)
$(eval $(call flavour,$(FAULTS),$(CC),$(DEBUG_FLAGS) $(SANITIZERS) -fno-pie -fno-optimize-sibling-calls))
$(eval $(call program,$(FAULTS)/toolbox,$(CC),$(FAULTS)/test/faults/faults.o $(call objects,$(FAULTS),applets/main.c $(LIB_SRC)), \
    $(SANITIZERS) -no-pie $(addprefix -Wl$(comma)--wrap=,$(FAULT_CALLS))))

faults: $(FAULTS)/toolbox ## every call that can fail fails once, at every place in the code (FAULTS_ARGS=--sites …)
	@/usr/bin/python3 test/faults/run.py $(CURDIR)/$(FAULTS)/toolbox $(FAULTS_ARGS)
.PHONY: faults

# ---- fuzzing -----------------------------------------------------------------------------------------------

FUZZ_SECONDS ?= 20

$(eval $(call flavour,$(FUZZ),$(CLANG),$(DEBUG_FLAGS) $(SANITIZERS) -fsanitize=fuzzer-no-link))
$(foreach t,$(FUZZ_TARGETS),$(eval $(call program,$(FUZZ)/$t,$(CLANG),$(FUZZ)/test/fuzz/$t.o \
    $(call objects,$(FUZZ),$(LIB_SRC)),$(SANITIZERS) -fsanitize=fuzzer)))

$(call unit_programs,$(FUZZ),$(CLANG),$(SANITIZERS))
unit-clang: $(addprefix $(FUZZ)/,$(UNIT_TESTS)) ## unit tests under clang's ASan and UBSan, which see what gcc's don't
	@scripts/run-units $^
.PHONY: unit-clang

fuzz: $(addprefix $(FUZZ)/,$(FUZZ_TARGETS)) ## each fuzzer for FUZZ_SECONDS=20; what it finds stays in build/fuzz
	@for t in $(FUZZ_TARGETS); do \
	    echo "== $$t"; mkdir -p $(FUZZ)/corpus/$$t test/fuzz/corpus/$${t#fuzz_}; \
	    $(FUZZ)/$$t -max_total_time=$(FUZZ_SECONDS) -timeout=10 -rss_limit_mb=1024 -print_final_stats=1 -verbosity=0 \
	        -artifact_prefix=$(FUZZ)/$$t- $(FUZZ)/corpus/$$t test/fuzz/corpus/$${t#fuzz_} || exit 1; \
	done
.PHONY: fuzz

# What the fuzzers reach of what they are for, with all that was found so far.
COVERAGE := $(BUILD)/coverage
PARSERS := rpc/http_parse.c rpc/json.c rpc/json_check.c rpc/json_parse.c rpc/json_write.c rpc/params.c rpc/request.c rpc/dispatch.c \
    rpc/chunk.c rpc/chunk_store.c core/term_filter.c core/utf8.c core/expression.c core/expression_find.c core/osinfo.c core/passwd.c \
    applets/tools/text_editor/edit_match.c applets/tools/text_editor/edit_view.c
$(eval $(call flavour,$(COVERAGE),$(CLANG),$(DEBUG_FLAGS) -fprofile-instr-generate -fcoverage-mapping))
$(foreach t,$(FUZZ_TARGETS),$(eval $(call program,$(COVERAGE)/$t,$(CLANG),$(COVERAGE)/test/fuzz/$t.o \
    $(COVERAGE)/test/fuzz/replay.o $(call objects,$(COVERAGE),$(LIB_SRC)),-fprofile-instr-generate)))

coverage: $(addprefix $(COVERAGE)/,$(FUZZ_TARGETS)) ## how much of the parsers the fuzzers' corpora reach
	@rm -f $(COVERAGE)/*.profraw; for t in $(FUZZ_TARGETS); do \
	    for d in test/fuzz/corpus/$${t#fuzz_} $(FUZZ)/corpus/$$t; do [ ! -d $$d ] || \
	        LLVM_PROFILE_FILE=$(COVERAGE)/$$t-%p.profraw $(COVERAGE)/$$t $$d >/dev/null || exit 1; done; done
	@llvm-profdata merge -o $(COVERAGE)/all $(COVERAGE)/*.profraw
	@llvm-cov report -instr-profile $(COVERAGE)/all $(COVERAGE)/$(firstword $(FUZZ_TARGETS)) \
	    $(patsubst %,-object $(COVERAGE)/%,$(wordlist 2,99,$(FUZZ_TARGETS))) $(PARSERS) | \
	    awk 'NR < 3 || /\.c |TOTAL/ { printf "%-32s lines %s, branches %s\n", $$1, $$10, $$13 }'
.PHONY: coverage

# ---- checks ------------------------------------------------------------------------------------------------

OWN_C = $(SRC) $(sort $(wildcard test/unit/*.c test/fuzz/*.c test/bench/*.c))
OWN_H = $(sort $(wildcard core/*.h rpc/*.h applets/*.h applets/*/*/*.h test/unit/*.h third_party/*.h))
SCRIPTS = $(shell git ls-files -co --exclude-standard | xargs awk 'FNR == 1 && /^#!.*sh( |$$)/ { print FILENAME } \
    FNR > 1 { nextfile }' 2>/dev/null)
PYTHON = $(shell git ls-files -co --exclude-standard '*.py')

check: check-format check-formats check-circles check-gcc check-clang check-tidy check-cppcheck check-scripts ## every static check, warnings are errors
.PHONY: check check-format check-formats check-circles check-gcc check-clang check-tidy check-cppcheck check-scripts

check-format:
	$(Q)clang-format --dry-run -Werror $(OWN_C) $(OWN_H)

check-formats:
	$(Q)scripts/check-formats $(SRC)

format: ## put every C file into the project's form
	clang-format -i $(OWN_C) $(OWN_H)
.PHONY: format

check-circles: $(call objects,$(B),$(SRC))
	$(Q)scripts/check-circles $(B)
	$(Q)scripts/check-reach $(B) '$(patsubst %.c,$(B)/%.o,$(filter $(PACKED),$(SRC)))' \
	    '$(packed_code)' $(call hot_objects,$(B),$(SRC))

# The real compilation, with the warnings that only gcc has. -O2: the flow analysis sees more.
GCC_WARN := -Wlogical-op -Wduplicated-cond -Wduplicated-branches -Wnull-dereference -Wcast-align=strict -Werror
$(eval $(call flavour,$(BUILD)/check-gcc,$(STATIC_CC),$(STATIC_FLAGS) -O2 $(GCC_WARN),$(B)/kernel/asm))
check-gcc: $(patsubst %.c,$(BUILD)/check-gcc/%.o,$(SRC))

# And with clang, on this machine's own libc, whose setrlimit core/static/ids.c does not stand in for. It doesn't follow a format through a va_list, as gcc does.
CLANG_WARN := -Wno-format-nonliteral -Wunreachable-code -Werror
$(eval $(call flavour,$(BUILD)/check-clang,$(CLANG),$(DEBUG_FLAGS) $(CLANG_WARN)))
check-clang: $(patsubst %.c,$(BUILD)/check-clang/%.o,$(filter-out core/static/ids.c,$(OWN_C)))

check-tidy: $(patsubst %,$(BUILD)/tidy/%.ok,$(filter-out core/static/ids.c,$(OWN_C)))
$(BUILD)/tidy/%.ok: % .clang-tidy $(OWN_H) $(DEPS)/manifest
	$(call say,TIDY,$<)
	$(Q)clang-tidy --quiet --warnings-as-errors='*' $< -- $(LANG_FLAGS) $(call rooms,$<) \
	    -DTOOLBOX_VERSION='""' -DTOOLBOX_SOURCE_ID='""' -DTOOLBOX_BUILD_ID='""' -DTOOLBOX_PUBLIC_KEY='""' 2>$@.log || { cat $@.log; exit 1; }
	@touch $@

# Its look for uninitialised variables doesn't see that a loop ran: gcc, clang-tidy and the sanitizers do
# that. And the linker's names of where something begins and ends are two objects to it.
check-cppcheck:
	$(Q)cppcheck --quiet --std=c11 --enable=warning,performance,portability --inline-suppr --error-exitcode=1 \
	    --suppress=missingIncludeSystem --suppress=uninitvar --suppress=comparePointers -D_GNU_SOURCE -D__x86_64__ -DTOOLBOX_VERSION='""' \
	    -DTOOLBOX_SOURCE_ID='""' -DTOOLBOX_BUILD_ID='""' -DTOOLBOX_PUBLIC_KEY='""' -Icore -Irpc -Iapplets $(SRC)

check-scripts:
	$(Q)shellcheck -x $(SCRIPTS)
	$(Q)$(if $(PYTHON),/usr/bin/python3 -m pyflakes $(PYTHON))

dist: $(DEPS)/manifest ## fill dist/ with a release, wheels and other packages in it (SIGN_KEY=key.pem signs it, ARCHES='amd64 arm64' limits it)
	@VERSION='$(VERSION)' BUILD='$(BUILD)' ARCHES='$(if $(filter command environment,$(origin ARCHES)),$(ARCHES))' \
	    SIGN_KEY='$(SIGN_KEY)' PUBLIC_KEY='$(PUBLIC_KEY)' DIST='$(DIST)' RELEASE_URL='$(RELEASE_URL)' scripts/dist
.PHONY: dist

packages: ## the same for amd64 and arm64 alone: all that people install
	@$(MAKE) -s dist ARCHES='amd64 arm64'
.PHONY: packages

test-packages: packages ## install each package as people do, without a network, where pip, npm, dpkg, Docker, Podman are; then make all twice
	TOOLBOX_DIST='$(or $(DIST),dist)' scripts/test --long test/integration/test_packages.py test/integration/test_packages_installed.py
	scripts/repro
.PHONY: test-packages

manual: $(PROGRAM) ## manual pages and completions, below build/share
	@scripts/manual $(PROGRAM) $(BUILD)
.PHONY: manual

repro: ## make a release twice, in two folders as two users: the same bytes? (ARCHES=all: of every architecture)
	scripts/repro $(if $(filter command environment,$(origin ARCHES)),$(ARCHES))
.PHONY: repro

bench: $(PROGRAM) $(BENCH) ## the figures, each against its baseline (ROWS=pattern, JSON=1)
	@/usr/bin/python3 test/bench/bench.py $(if $(JSON),--json) --rows '$(ROWS)' $(CURDIR)/$(B)/toolbox $(CURDIR)/$(B)/bench
.PHONY: bench

# A fresh machine's and a poor one's.
roots: ## scripts/demo and scripts/test in bare Debian and Ubuntu roots (LOAD=20 beside busy loops, TIMES=5)
	scripts/test-roots --load $(or $(LOAD),0) --times $(or $(TIMES),1)
absent: ## scripts/test once without each thing that not every machine has
	scripts/test-absent
.PHONY: roots absent

long: $(PROGRAM) ## all integration tests (scripts/test takes every listed case and a sample of their variations)
	@scripts/test --long test/integration
.PHONY: long

soak: $(PROGRAM) ## mixed use for SOAK_SECONDS=1800: nothing grows, nothing is left (SOAK_BIN=build/sanitize/toolbox …)
	@/usr/bin/python3 test/stress/soak.py --seconds $(SOAK_SECONDS) $(CURDIR)/$(SOAK_BIN)
.PHONY: soak
SOAK_SECONDS ?= 1800
SOAK_BIN ?= $(PROGRAM)

# The table's own rows are those of the machine that it runs on.
bench-peers: $(BENCH) ## the figures side by side with the tools of inspect_ai and docker exec (scripts/setup peers)
	@$(MAKE) -s GUEST=1 ARCH=amd64
	@$(MAKE) -s GUEST=1 ARCH=arm64
	@/usr/bin/python3 test/bench/peers.py --write docs/benchmarks.md $(CURDIR)/$(BUILD)/guest/$(HOST_ARCH)/toolbox $(CURDIR)/$(B)/bench
	@$(MAKE) -s bench-browser
.PHONY: bench-peers

bench-browser: $(PROGRAM) ## the figures of the browser tool beside the one that came before (scripts/setup peers)
	@/usr/bin/python3 test/bench/peers_web.py --write docs/benchmarks.md $(CURDIR)/$(PROGRAM)
.PHONY: bench-browser

inspect: $(PROGRAM) ## every test with the real inspect_ai, the current version and older ones (scripts/setup peers)
	@$(MAKE) -s ARCH=$(filter-out $(HOST_ARCH),amd64 arm64)
	@test/inspect/all
.PHONY: inspect

inspect-upstream: $(PROGRAM) ## the tests in inspect_ai's repository that concern its tools, against ours: INSPECT_AI_SRC=DIR, a checkout of it
	@$(MAKE) -s ARCH=$(filter-out $(HOST_ARCH),amd64 arm64)
	@test/inspect/upstream
.PHONY: inspect-upstream

agents: $(PROGRAM) ## real agents, the newest from npm and PyPI (3 GB), do a turn each through model_proxy
	@test/peers/agents
.PHONY: agents

FLEET ?= 10000
stress: $(PROGRAM) ## 10,000 jobs, 10,000 runs, 500 runs in each of 12 programs, 200 sessions, 100 killed servers, 500 clients, 500 kill -9, 200 of connections, 500 of copies and edits, 10,000 hostile trees and patches, a fleet of FLEET targets: nothing lost or left
	@/usr/bin/python3 test/stress/jobs.py $(CURDIR)/$(PROGRAM)
	@/usr/bin/python3 test/stress/starters.py $(CURDIR)/$(PROGRAM)
	@/usr/bin/python3 test/stress/clients.py $(CURDIR)/$(PROGRAM)
	@/usr/bin/python3 test/stress/runs.py $(CURDIR)/$(PROGRAM)
	@/usr/bin/python3 test/stress/programs.py $(CURDIR)/$(PROGRAM)
	@/usr/bin/python3 test/stress/killed.py $(CURDIR)/$(PROGRAM)
	@/usr/bin/python3 test/stress/interrupts.py $(CURDIR)/$(PROGRAM)
	@/usr/bin/python3 test/stress/connection.py $(CURDIR)/$(PROGRAM)
	@/usr/bin/python3 test/stress/files.py $(CURDIR)/$(PROGRAM)
	@/usr/bin/python3 test/stress/fleet.py --targets $(FLEET) $(CURDIR)/$(PROGRAM)
	@/usr/bin/python3 -m pytest -p no:cacheprovider -q test/integration/stress_bash_session.py test/integration/stress_inject.py \
	    test/integration/stress_hostile.py
.PHONY: stress

# ---- the rest ----------------------------------------------------------------------------------------------

site: ## the documentation as HTML in build/site, every link checked (scripts/setup site)
	@scripts/site
pictures: ## draw docs/pictures again: from the texts beside them, and the tables of docs/benchmarks.md (scripts/setup site)
	@scripts/pictures
	@scripts/charts
.PHONY: site pictures

clean: ## remove what was built (what was fetched stays)
	rm -rf $(if $(filter build,$(BUILD)),toolbox) $(filter-out $(DEPS) $(BUILD)/cache $(BUILD)/deps.lock,$(wildcard $(BUILD)/*))

distclean: ## remove what was built and fetched
	rm -rf $(if $(filter build,$(BUILD)),toolbox) $(BUILD)

help: ## this text
	@sed -n 's/^\([a-z][a-z-]*\):[^#]*## \(.*\)/  make \1	\2/p' Makefile | expand -t 18
.PHONY: clean distclean help
