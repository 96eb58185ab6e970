// Command go calls every operation of the HTTP API at a URL, with the client that oapi-codegen
// generates in api.go.
package main

import (
	"context"
	"fmt"
	"net/http"
	"os"
)

func main() {
	if err := calls(context.Background(), os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func calls(ctx context.Context, url string) error {
	c, err := NewClientWithResponses(url, WithRequestEditorFn(func(_ context.Context, r *http.Request) error {
		r.Header.Set("Accept", "application/json")
		return nil
	}))
	if err != nil {
		return err
	}
	three, meta, events, base := 3, 7, "events", "62"
	ids, err := c.TakeIDsWithResponse(ctx, &TakeIDsParams{N: &three})
	if err != nil || ids.JSON200 == nil || len(ids.JSON200.Ids) != three {
		return fmt.Errorf("ids: %v, %+v", err, ids)
	}
	posted, err := c.PostIDsWithFormdataBodyWithResponse(ctx, nil,
		PostIDsFormdataRequestBody{N: &three, Generator: &events, Meta: &meta})
	if err != nil || posted.JSON200 == nil || len(posted.JSON200.Ids) != three {
		return fmt.Errorf("posted: %v, %+v", err, posted)
	}
	leases, err := c.TakeLeasesWithResponse(ctx, &TakeLeasesParams{N: &three})
	if err != nil || leases.JSON200 == nil || leases.JSON200.Leases[0].Count < 1 {
		return fmt.Errorf("leases: %v, %+v", err, leases)
	}
	runs, err := c.PostLeasesWithFormdataBodyWithResponse(ctx, nil,
		PostLeasesFormdataRequestBody{N: &three, Base: &base})
	if err != nil || runs.JSON200 == nil || runs.JSON200.Leases[0].Count < 1 {
		return fmt.Errorf("posted leases: %v, %+v", err, runs)
	}
	apart, err := c.DecomposeWithResponse(ctx, ids.JSON200.Ids[0], nil)
	if err != nil || apart.JSON200 == nil || apart.JSON200.Format != "flake" {
		return fmt.Errorf("fields: %v, %+v", err, apart)
	}
	wrong, err := c.DecomposeWithResponse(ctx, runs.JSON200.Leases[0].First, nil) // in base 62
	if err != nil || wrong.ApplicationproblemJSON400 == nil || *wrong.ApplicationproblemJSON400.Parameter != "id" {
		return fmt.Errorf("no id: %v, %+v", err, wrong)
	}
	to := "2026-11-22T00:00:00Z"
	bounds, err := c.NotionalWithResponse(ctx, &NotionalParams{From: "1795219200000", To: &to})
	if err != nil || bounds.JSON200 == nil || bounds.JSON200.Lowest == nil || bounds.JSON200.Id != nil {
		return fmt.Errorf("bounds: %v, %+v", err, bounds)
	}
	info, err := c.InfoWithResponse(ctx)
	if err != nil || info.JSON200 == nil || info.JSON200.Generators[0].Name != "flake" {
		return fmt.Errorf("info: %v, %+v", err, info)
	}
	healthy, err1 := c.HealthzWithResponse(ctx)
	ready, err2 := c.ReadyzWithResponse(ctx, nil)
	metrics, err3 := c.MetricsWithResponse(ctx)
	document, err4 := c.OpenAPIWithResponse(ctx)
	for _, err := range []error{err1, err2, err3, err4} {
		if err != nil {
			return err
		}
	}
	if len(healthy.Body) == 0 || len(ready.Body) == 0 || len(metrics.Body) == 0 || len(document.Body) == 0 {
		return fmt.Errorf("empty: %q, %q, %q, %q", healthy.Body, ready.Body, metrics.Body, document.Body)
	}
	return nil
}
