/** Refuses unknown options. Otherwise a misspelled option would silently keep its default. */
export function none (of, rest) {
  for (const name in rest) throw new TypeError(`${of} has no option ${name}`)
}
