package commands

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/flake-go/flake/client"
	"github.com/flake-go/flake/config"
	"github.com/flake-go/flake/flake/formats"
	"github.com/flake-go/flake/idserver/inspect"
	"github.com/flake-go/flake/internal/escape"
	"github.com/flake-go/flake/rel/flake/cli"
	"github.com/flake-go/flake/rel/flake/output"
)

// InspectMore is the help of [Inspect].
const InspectMore = `An id may be in any text form: one of its format's own, a UUID, hexadecimal, digits
in base 10, 16, 32, 36, 58 or 62, or an Erlang binary such as <<0,0,1>>. With -, ids
are read from standard input, one per line.

The same text may be an id in several formats. The likeliest is shown, preferably one
whose time is from 2000 to tomorrow, with a line for what else the text may be. With
-format, it is read only in that format. Ids of snowflake and flake-idgen do not contain
their epoch: set it with -epoch, or use -config, which reads ids as those of the node's
generators. Without -base, digits and hexadecimal without 0x are an id only if its time
is from 2000 to tomorrow, and not on its format's first day, as that of a short word
such as hello; and a UUID of another version is not an id.

The exit status is 0 if all inputs are ids, 1 if not, and 2 if flags or the
configuration are wrong.`

// Inspect decodes ids.
func Inspect(f *cli.Flags) cli.Action {
	f.File = f.String("config", "", "read ids as those of a node's generators, from its configuration, `FILE`")
	addKeys(f, false)
	in := f.String("base", canonical, "read ids in `BASE`: 2 to 62; "+namedBases+
		"; canonical: any of these, and the formats' own text forms")
	asJSON := f.Bool("json", false, "print one JSON object per line")
	return func(ctx context.Context, args []string, stdout, _ io.Writer) error {
		v, err := inspectorOf(f)
		if err == nil {
			v.base, err = textBaseOf(*in)
		}
		if err == nil && len(args) == 0 {
			err = errors.New("no ids: give them as arguments, or use - to read standard input")
		}
		if err != nil {
			return cli.UsageError(err)
		}
		v.out, v.asJSON = stdout, *asJSON
		return v.inspect(ctx, args, os.Stdin)
	}
}

// inspector decodes ids that one of the makers may have made.
type inspector struct {
	makers []inspect.Maker
	names  []string // of the makers' generators; empty if the makers are formats
	base   int
	asJSON bool
	out    io.Writer
	wrong  int // inputs that are not ids
	now    func() time.Time
}

func inspectorOf(f *cli.Flags) (*inspector, error) {
	all, err := generatorsToRead(f)
	if err != nil {
		return nil, err
	}
	v := &inspector{now: time.Now}
	for _, g := range all {
		m := inspect.Maker{Format: g.Layout()}
		if *f.File != "" {
			v.names = append(v.names, g.Name)
			if p, err := g.Kind().Plan(g.Options); err == nil && !g.Random && len(g.Assigned) == 0 {
				m.Worker = func() uint64 { return p.Worker }
			}
		}
		v.makers = append(v.makers, m)
	}
	return v, nil
}

// generatorsToRead returns the generators in the -config file. Without -config, it returns the one that the
// flags describe or, without -format, one for each format that has all the keys given as flags.
func generatorsToRead(f *cli.Flags) (all []config.Generator, err error) {
	layout := givenKeys(f)
	switch {
	case *f.File != "" && len(layout) > 0:
		return nil, fmt.Errorf("-config cannot be combined with %s", layout[0].Name)
	case *f.File != "":
		cfg, err := f.Load()
		own := cfg.Flake.Generator
		own.Random = len(own.Options) == 0
		return append([]config.Generator{own}, cfg.Generators...), err
	case f.Given("format") != "":
		g, err := config.LoadGenerator(false, layout...)
		return []config.Generator{g}, err
	}
	load := func(format string) (config.Generator, error) {
		return config.LoadGenerator(false, append(layout, config.Flag{Name: "-format", Key: "format",
			Value: format})...)
	}
	for _, format := range formats.Names() {
		if g, err := load(format); err == nil {
			all = append(all, g)
		}
	}
	if len(all) == 0 {
		_, err = load("snowflake") // snowflake has all layout keys
	}
	return all, err
}

func (v *inspector) inspect(ctx context.Context, args []string, stdin io.Reader) error {
	done := make(chan error, 1)
	go func() { done <- v.showAll(args, stdin) }()
	select {
	case err := <-done:
		return err
	case <-ctx.Done(): // a read of stdin may still be blocked
		return context.Cause(ctx)
	}
}

func (v *inspector) showAll(args []string, stdin io.Reader) error {
	for _, arg := range args {
		if arg != "-" {
			if err := v.show(arg); err != nil {
				return err
			}
			continue
		}
		lines := bufio.NewScanner(stdin)
		for lines.Scan() {
			if strings.TrimSpace(lines.Text()) == "" {
				continue
			}
			if err := v.show(lines.Text()); err != nil {
				return err
			}
		}
		if err := lines.Err(); err != nil {
			return fmt.Errorf("standard input: %w", err)
		}
	}
	if v.wrong > 0 {
		return fmt.Errorf("inputs that are not ids: %d", v.wrong)
	}
	return nil
}

type inspected struct {
	Text string `json:"text"`         // the text as given
	As   string `json:"as,omitempty"` // how it was read
	*inspect.Parts
	Texts  map[string]string `json:"texts,omitempty"`
	Others []alternative     `json:"others,omitempty"` // what else the text may be
	Error  string            `json:"error,omitempty"`
}

type alternative struct {
	As        string    `json:"as"`
	Format    string    `json:"format"`
	Generator string    `json:"generator,omitempty"`
	Time      time.Time `json:"time"`
}

func (v *inspector) show(text string) error {
	text = inspect.Trim(text)
	now := v.now()
	readings := inspect.Read(v.makers, text, v.base, v.base == client.Canonical, now)
	if len(readings) == 0 {
		v.wrong++
		if len(text) > shownOfText {
			text = fmt.Sprintf("%s... (%d bytes)", text[:shownOfText], len(text))
		}
		if v.asJSON {
			return output.PrintJSON(v.out, inspected{Text: text, Error: "not an id of " + v.formats()}, "")
		}
		_, err := fmt.Fprintf(v.out, "%s: not an id of %s\n\n", escape.Text(text), v.formats())
		return err
	}
	best := readings[0]
	var others []alternative
	for _, r := range inspect.Others(readings, 0) {
		others = append(others, alternative{r.As, r.Format.Name, v.name(r), time.UnixMilli(int64(r.Milli)).UTC()})
	}
	if !v.asJSON {
		_, err := io.WriteString(v.out, escape.Lines(v.table(text, best, others, now)))
		return err
	}
	parts := inspect.PartsOf(best.Format, best.ID)
	parts.Generator = v.name(best)
	object := inspected{Text: text, As: best.As, Parts: &parts, Texts: map[string]string{}, Others: others}
	for _, t := range inspect.Texts(best.Format, best.ID) {
		object.Texts[t.Name] = t.Text
	}
	return output.PrintJSON(v.out, object, "")
}

// shownOfText is the number of bytes shown of an input that is not an id.
const shownOfText = 100

func (v *inspector) formats() string {
	var names []string
	for _, m := range v.makers {
		names = append(names, m.Format.Name)
	}
	all := strings.Join(names, ", ")
	if v.base == formats.Canonical {
		return all
	}
	return all + " in " + formats.NameOf(v.base)
}

// name returns the generator of a reading, or "" if the makers are formats.
func (v *inspector) name(r inspect.Reading) string {
	if len(v.names) == 0 {
		return ""
	}
	return v.names[r.Maker]
}

func (v *inspector) table(text string, r inspect.Reading, others []alternative, now time.Time) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s, read as %s\n", text, cmp.Or(v.name(r), r.Format.Name), r.As)
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	for _, f := range r.Format.Fields(r.ID) {
		value, note := inspect.Value(f, now)
		if note != "" {
			note = "\t" + note
		}
		fmt.Fprintf(w, "  %s\t%s\t%s%s\n", f.Name, value, inspect.Bits(f), note)
	}
	for _, t := range inspect.Texts(r.Format, r.ID) {
		fmt.Fprintf(w, "  %s\t%s\n", t.Name, t.Text)
	}
	w.Flush()
	for i, o := range others {
		lead := "  or it is"
		if i > 0 {
			lead = "        or"
		}
		fmt.Fprintf(&b, "%s %s in %s, from %s\n", lead, cmp.Or(o.Generator, o.Format), o.As,
			o.Time.Format(time.DateOnly))
	}
	b.WriteByte('\n')
	return b.String()
}
