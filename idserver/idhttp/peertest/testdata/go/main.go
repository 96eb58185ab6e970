// Command go calls every operation of the HTTP API at a URL, with the client that oapi-codegen
// generates in api.go.
package main

import (
	"context"
	"log"
	"net/http"
	"os"
)

func main() {
	ctx := context.Background()
	c := must(NewClientWithResponses(os.Args[1], WithRequestEditorFn(func(_ context.Context, r *http.Request) error {
		r.Header.Set("Accept", "application/json")
		return nil
	})))
	three, meta, events, base, to := 3, 7, "events", "62", "2026-11-22T00:00:00Z"
	ids := must(c.TakeIDsWithResponse(ctx, &TakeIDsParams{N: &three}))
	check(ids.JSON200 != nil && len(ids.JSON200.Ids) == three, ids)
	posted := must(c.PostIDsWithFormdataBodyWithResponse(ctx, nil,
		PostIDsFormdataRequestBody{N: &three, Generator: &events, Meta: &meta}))
	check(posted.JSON200 != nil && len(posted.JSON200.Ids) == three, posted)
	leases := must(c.TakeLeasesWithResponse(ctx, &TakeLeasesParams{N: &three}))
	check(leases.JSON200 != nil && leases.JSON200.Leases[0].Count >= 1, leases)
	runs := must(c.PostLeasesWithFormdataBodyWithResponse(ctx, nil,
		PostLeasesFormdataRequestBody{N: &three, Base: &base}))
	check(runs.JSON200 != nil && runs.JSON200.Leases[0].Count >= 1, runs)
	apart := must(c.DecomposeWithResponse(ctx, ids.JSON200.Ids[0], nil))
	check(apart.JSON200 != nil && apart.JSON200.Format == "flake", apart)
	wrong := must(c.DecomposeWithResponse(ctx, runs.JSON200.Leases[0].First, nil)) // in base 62
	check(wrong.ApplicationproblemJSON400 != nil && *wrong.ApplicationproblemJSON400.Parameter == "id", wrong)
	bounds := must(c.NotionalWithResponse(ctx, &NotionalParams{From: "1795219200000", To: &to}))
	check(bounds.JSON200 != nil && bounds.JSON200.Lowest != nil && bounds.JSON200.Id == nil, bounds)
	info := must(c.InfoWithResponse(ctx))
	check(info.JSON200 != nil && info.JSON200.Generators[0].Name == "flake", info)
	for _, body := range [][]byte{
		must(c.HealthzWithResponse(ctx)).Body, must(c.ReadyzWithResponse(ctx, nil)).Body,
		must(c.MetricsWithResponse(ctx)).Body, must(c.OpenAPIWithResponse(ctx)).Body,
	} {
		check(len(body) > 0, "an empty body")
	}
}

// must returns v, or ends the program if err is not nil.
func must[T any](v T, err error) T {
	if err != nil {
		log.Fatal(err)
	}
	return v
}

// check prints the answer and ends the program, unless the answer is right.
func check(right bool, answer any) {
	if !right {
		log.Fatalf("%T: %+v", answer, answer)
	}
}
