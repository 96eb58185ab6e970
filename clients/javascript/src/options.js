/** Refuses unknown options. Otherwise a misspelt option would have its default. */
export function none (of, rest) {
  for (const name in rest) throw new TypeError(`${of} has no option ${name}`)
}
