package main

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/flake-go/flake/flake/formats"
)

// generatorOf returns the name that generatorsOf gives to the generator of a format.
func generatorOf(k *formats.Kind) string {
	if k.Name == "flake" {
		return k.Name
	}
	return strings.ReplaceAll(k.Name, "-", "_") + "s"
}

// generatorsOf returns [[generator]] tables of all formats, with places that no other test uses. The epochs are the
// same, so that only the numbers distinguish 64-bit ids.
func generatorsOf() string {
	var b strings.Builder
	epoch := time.UnixMilli(rand.Int64N(1 << 40)).UTC().Format("2006-01-02T15:04:05.000Z")
	for i, k := range formats.Kinds {
		if k.Name == "flake" {
			continue
		}
		fmt.Fprintf(&b, "[[generator]]\nname = %q\nformat = %q\n", generatorOf(k), k.Name)
		if k.Key("epoch") != nil {
			fmt.Fprintf(&b, "epoch = %s\n", epoch)
		}
		keys, all := k.Numbers[len(k.Numbers)-1], uint64(len(formats.Kinds))
		number := rand.Uint64N((k.MaxNumber(nil, keys)+1)/all)*all + uint64(i) // which no other format has
		for _, key := range keys {
			if k.Random() {
				fmt.Fprintf(&b, "%s = \"random\"\n", key)
			} else {
				fmt.Fprintf(&b, "%s = %d\n", key, k.Numbered(nil, keys, number)[key])
			}
		}
	}
	return b.String()
}

// One node hands out ids of all formats, to Erlang and Elixir. After SIGKILL, new ids are above all
// earlier ones.
func TestGenerators(t *testing.T) {
	t.Parallel()
	lives := max(4, *kills/4)
	port, config := freePort(t), configFile(t, "")
	appendTo(t, config, generatorsOf())
	startEPMD(t, port)
	var names string
	for _, k := range formats.Kinds {
		names += fmt.Sprintf(",%s/%d", generatorOf(k), k.Format(nil).Size)
	}
	caller := spawnErl(t, port, nil, fmt.Sprintf("formats=%d%s", lives, names))
	for life := range lives {
		n := spawn(t, port, command, "-noinput", "-config", config)
		caller.await(fmt.Sprintf("CALLING %d", life+1))
		if life == 0 {
			p := spawn(t, port, "elixir", "--name", "elixir@127.0.0.1", "--cookie", cookie,
				"--erl", "-start_epmd false", "testdata/formats.exs", nodeName, names)
			wantChecks(t, p, "formats")
		}
		time.Sleep(time.Duration(rand.IntN(700)) * time.Millisecond) // kill at a random moment
		n.signal(syscall.SIGKILL)
		n.wait() // callers notice the end before the lock and the claims are released
		caller.await(fmt.Sprintf("LIFE %d", life+1))
	}
	wantChecks(t, caller, "formats")
}

// Two generators that would hand out the same ids are refused. So is a generator with settings that
// its format does not allow.
func TestGeneratorsRefused(t *testing.T) {
	t.Parallel()
	own := generatorsOf()
	for name, test := range map[string]struct{ tables, want string }{
		"the same machine": {own + strings.ReplaceAll(own, `name = "`, `name = "other_`),
			" ms): generator flake_idgens has it, and both would hand out the same ids; give one of them another id"},
		"some of the same sequences": {"[[generator]]\nname = \"low\"\nformat = \"sno\"\npartition = 7\nsequence_max = 99\n" +
			"[[generator]]\nname = \"next\"\nformat = \"sno\"\npartition = 7\nsequence_min = 100\nsequence_max = 199\n" +
			"[[generator]]\nname = \"within\"\nformat = \"sno\"\npartition = 7\nsequence_min = 199\nsequence_max = 299\n",
			"generator within: partition 7 of format sno with sequence numbers 199 to 299: generator next has it, and both " +
				"would hand out the same ids; give one of them another partition"},
		"the time has run out": {"[[generator]]\nname = \"orders\"\nformat = \"snowflake\"\nid = 1\ntime_bits = 38\n",
			"generator orders: 38 bits of time end at 2019-07-21T12:41:21.6Z"},
		"the epoch is in the future": {"[[generator]]\nname = \"orders\"\nformat = \"snowflake\"\nid = 1\nepoch = " +
			"2999-01-01T00:00:00Z\n",
			"generator orders: "},
	} {
		t.Run(name, func(t *testing.T) {
			config := configFile(t, "epmd = \"off\"")
			appendTo(t, config, test.tables)
			p := spawn(t, freePort(t), command, "-noinput", "-config", config)
			if status := p.wait(); status != exitFailure || !strings.Contains(p.output(), test.want) {
				t.Errorf("exit status %d, want %d and %q", status, exitFailure, test.want)
			}
		})
	}
}

// Generators of one or several nodes can share a partition if their sequences differ.
func TestPartitionShared(t *testing.T) {
	t.Parallel()
	partition := rand.IntN(1 << 16)
	config := func(ranges ...string) string {
		config := configFile(t, "epmd = \"off\"")
		for i, r := range ranges {
			appendTo(t, config,
				fmt.Sprintf("[[generator]]\nname = \"events%d\"\nformat = \"sno\"\npartition = %d\n%s\n", i, partition, r))
		}
		return config
	}
	spawn(t, freePort(t), command, "-noinput", "-config",
		config("sequence_max = 99", "sequence_min = 100\nsequence_max = 199")).await("  EPMD ")
	spawn(t, freePort(t), command, "-noinput", "-config", config("sequence_min = 200")).await("  EPMD ")
	p := spawn(t, freePort(t), command, "-noinput", "-config", config("sequence_min = 50\nsequence_max = 60"))
	want := fmt.Sprintf("partition %d of format sno with sequence numbers 50 to 60: another generator on this "+
		"machine has it", partition)
	if status := p.wait(); status != exitFailure || !strings.Contains(p.output(), want) {
		t.Errorf("exit status %d, want %d and %q", status, exitFailure, want)
	}
}

func appendTo(t *testing.T, path, text string) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString(text); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}
