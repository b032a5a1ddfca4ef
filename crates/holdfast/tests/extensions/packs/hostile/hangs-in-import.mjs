// Never ends being loaded.
// load: has not ended within

await new Promise(() => {});
