# toolbox: one static binary per architecture. `make help` explains every target.
#
# Sources are found by wildcard: a new file needs no line here.

VERSION := 0.1.0

# ---- this machine, and the one to build for ---------------------------------------------------------------------

machine_x86_64 := amd64
machine_aarch64 := arm64
HOST_ARCH := $(machine_$(shell uname -m))
ARCH ?= $(HOST_ARCH)

triplet_amd64 := x86_64-linux-gnu
triplet_arm64 := aarch64-linux-gnu
triplet := $(triplet_$(ARCH))
ifeq ($(triplet),)
$(error ARCH must be amd64 or arm64, not '$(ARCH)')
endif

CC := gcc
ifeq ($(ARCH),$(HOST_ARCH))
CROSS_CC := $(CC)
STRIP := strip
READELF := readelf
KERNEL := /usr/include
else
CROSS_CC := $(triplet)-gcc
STRIP := $(triplet)-strip
READELF := $(triplet)-readelf
KERNEL := /usr/$(triplet)/include
endif

# ---- what there is ----------------------------------------------------------------------------------------------

BUILD := build
B := $(BUILD)/$(ARCH)
DEPS := $(BUILD)/deps
MUSL := $(DEPS)/musl-$(ARCH)

SRC := $(sort $(wildcard core/*.c rpc/*.c applets/*.c applets/*/*.c))
LIB_SRC := $(filter-out applets/main.c,$(SRC))
VENDOR_OBJ := vendor/cJSON.o vendor/sha256.o vendor/platform_util.o
UNIT := $(basename $(notdir $(sort $(wildcard test/unit/test_*.c))))
FUZZ := $(basename $(notdir $(sort $(wildcard test/fuzz/fuzz_*.c))))

objects = $(patsubst %.c,$1/%.o,$2)
vendor = $(addprefix $1/,$(VENDOR_OBJ))

# ---- flags ------------------------------------------------------------------------------------------------------

# Calls run downwards only, applets -> rpc -> core, and each room sees no more than it may: the include path is the rule.
CJSON := -isystem $(DEPS)/cjson
MBEDTLS := -isystem $(DEPS)/mbedtls/include
BANNED := $(if $(wildcard core/banned.h),-include core/banned.h)
rooms = -Icore $(if $(filter rpc/% applets/% test/%,$1),-Irpc) $(if $(filter applets/% test/%,$1),-Iapplets) \
    $(if $(filter rpc/% %_methods.c test/%,$1),$(CJSON)) $(if $(filter core/sha256.c,$1),$(MBEDTLS)) \
    $(if $(filter test/%,$1),,$(BANNED))

WARN := -Wall -Wextra
LANG_FLAGS := -std=c11 -D_GNU_SOURCE -DMBEDTLS_CONFIG_FILE='"mbedtls_config.h"' -idirafter third_party
STATIC_FLAGS := -Os -g -fPIE -fvisibility=hidden -ffunction-sections -fdata-sections -fstack-protector-strong \
    -fno-asynchronous-unwind-tables -fno-unwind-tables -ffile-prefix-map=$(CURDIR)=. \
    -nostdinc -isystem $(MUSL)/include -isystem $(shell $(CROSS_CC) -print-file-name=include) -isystem $(B)/kernel
STATIC_LINK := -nostdlib -nostartfiles -static-pie \
    -Wl,--no-dynamic-linker,-z,text,-z,relro,-z,now,-z,noexecstack,--gc-sections,--build-id=none,-O1
DEBUG_FLAGS := -O1 -g -fno-omit-frame-pointer
SAN := -fsanitize=address,undefined -fno-sanitize-recover=all

# ---- the binary -------------------------------------------------------------------------------------------------

.DEFAULT_GOAL := all
.DELETE_ON_ERROR:
.SUFFIXES:
.SECONDARY:
MAKEFLAGS += --no-builtin-rules

all: $(if $(filter $(ARCH),$(HOST_ARCH)),toolbox,$(B)/toolbox) ## ./toolbox for this machine (ARCH=arm64: build/arm64/toolbox)

toolbox: $(B)/toolbox
	@cp $< $@.new && mv $@.new $@

# A short line for each step; V=1 shows the commands themselves.
Q := $(if $(V),,@)
say = @mkdir -p $(@D)$(if $(V),,; printf '  %-5s %s\n' $1 $2)

.PHONY: all FORCE
FORCE:

# Everything that was decided outside the sources; an object is made again when it changes.
define remember
	@mkdir -p $(@D)
	@printf '%s\n' '$(subst ','\'',$1)' | cmp -s - $@ || printf '%s\n' '$(subst ','\'',$1)' >$@
endef

BUILD_INPUTS := $(sort Makefile $(wildcard third_party/* core/*.[ch] core/*.def rpc/*.[ch] applets/*.[ch] applets/*.def \
    applets/*/*.[ch]))
build_id = $(shell { echo '$(VERSION) $1'; cat $(DEPS)/manifest; LC_ALL=C sha256sum $(BUILD_INPUTS); } 2>&1 | \
    sha256sum | cut -c1-16)

# flavour DIR COMPILER FLAGS: how DIR/x.o comes from x.c
define flavour
$1/flags: FORCE
	$$(call remember,$2 $(LANG_FLAGS) $(WARN) $3)
$1/build_id: $(DEPS)/manifest FORCE
	$$(call remember,$$(call build_id,$1))
$1/%.o: %.c $1/flags $(DEPS)/manifest | $4
	$$(call say,CC,$$@)
	$(Q)$2 $(LANG_FLAGS) $(WARN) $3 $$(call rooms,$$<) -MMD -MP -c -o $$@ $$<
$1/core/version.o: core/version.c $1/flags $1/build_id | $4
	$$(call say,CC,$$@)
	$(Q)$2 $(LANG_FLAGS) $(WARN) $3 $$(call rooms,$$<) -DTOOLBOX_VERSION='"$(VERSION)"' \
	    -DTOOLBOX_BUILD_ID="\"$$$$(cat $1/build_id)\"" -MMD -MP -c -o $$@ $$<
$1/vendor/cJSON.o: $(DEPS)/manifest $1/flags | $4
	$$(call say,CC,$$@)
	$(Q)$2 $(LANG_FLAGS) -w $3 -DCJSON_HIDE_SYMBOLS -c -o $$@ $(DEPS)/cjson/cJSON.c
$1/vendor/%.o: $(DEPS)/manifest $1/flags third_party/mbedtls_config.h | $4
	$$(call say,CC,$$@)
	$(Q)$2 $(LANG_FLAGS) -w $3 $(MBEDTLS) -c -o $$@ $(DEPS)/mbedtls/library/$$*.c
-include $$(wildcard $1/*/*.d $1/*/*/*.d)
endef

$(eval $(call flavour,$(B),$(CROSS_CC),$(STATIC_FLAGS),$(B)/kernel/asm))
$(eval $(call flavour,$(BUILD)/unit,$(CC),$(DEBUG_FLAGS)))
$(eval $(call flavour,$(BUILD)/sanitize,$(CC),$(DEBUG_FLAGS) $(SAN)))

# The kernel's headers come with the C compiler's own package set; nothing else of the host's is visible.
$(B)/kernel/asm:
	@mkdir -p $(B)/kernel
	@ln -sfn $(KERNEL)/linux $(B)/kernel/linux
	@ln -sfn $(KERNEL)/asm-generic $(B)/kernel/asm-generic
	@ln -sfn $(firstword $(wildcard $(KERNEL)/$(triplet)/asm $(KERNEL)/asm)) $@

crt = $(shell $(CROSS_CC) -print-file-name=$1)

$(B)/toolbox.full: $(call objects,$(B),$(SRC)) $(call vendor,$(B))
	$(call say,LD,$@)
	$(Q)$(CROSS_CC) $(STATIC_LINK) -o $@ $(MUSL)/lib/rcrt1.o $(MUSL)/lib/crti.o $(call crt,crtbeginS.o) $^ \
	    -L$(MUSL)/lib -Wl,--start-group -lc -lgcc -lgcc_eh -Wl,--end-group $(call crt,crtendS.o) $(MUSL)/lib/crtn.o

$(B)/toolbox: $(B)/toolbox.full scripts/check-static
	@$(STRIP) -s -o $@.new $<
	@scripts/check-static $(READELF) $(ARCH) $@.new
	@mv $@.new $@

objs: $(call objects,$(B),$(SRC)) $(call vendor,$(B)) ## compile everything, link nothing
.PHONY: objs

# ---- dependencies -----------------------------------------------------------------------------------------------

deps: $(DEPS)/manifest ## fetch cJSON, mbedtls and musl (DEB_MIRROR=, DEPS_DIR=, TOOLBOX_CACHE=)
.PHONY: deps

$(DEPS)/manifest: third_party/pins third_party/fetch
	@DEPS_DIR='$(DEPS_DIR)' DEB_MIRROR='$(DEB_MIRROR)' TOOLBOX_CACHE='$(TOOLBOX_CACHE)' third_party/fetch $(BUILD)

# ---- tests ------------------------------------------------------------------------------------------------------

$(BUILD)/unit/%: $(BUILD)/unit/test/unit/%.o $(call objects,$(BUILD)/unit,$(LIB_SRC)) $(call vendor,$(BUILD)/unit)
	$(call say,LD,$@)
	$(Q)$(CC) -o $@ $^ -lcmocka

unit: $(addprefix $(BUILD)/unit/,$(UNIT)) ## unit tests
	@status=0; for t in $(addprefix $(BUILD)/unit/,$(UNIT)); do echo "== $$t"; $$t || status=1; done; exit $$status
.PHONY: unit

# ---- the rest ---------------------------------------------------------------------------------------------------

clean: ## remove what was built (fetched dependencies stay)
	rm -rf toolbox $(filter-out $(DEPS) $(BUILD)/cache $(BUILD)/deps.lock,$(wildcard $(BUILD)/*))

distclean: ## remove everything that was made or fetched
	rm -rf toolbox $(BUILD)

help: ## this text
	@sed -n 's/^\([a-z]*\):.*## \(.*\)/  make \1\t\2/p' Makefile | expand -t 20
.PHONY: clean distclean help
