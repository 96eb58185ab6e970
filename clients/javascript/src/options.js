/** Refuses options that there are not: one misspelt would be the default. */
export function none (of, rest) {
  for (const name in rest) throw new TypeError(`${of} has no option ${name}`)
}
