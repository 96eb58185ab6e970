const base62 = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'
const crockford = '0123456789ABCDEFGHJKMNPQRSTVWXYZ'
const sno = '23456789abcdefghijklmnopqrstuvwx'

/**
 * The text of a number in a base. In a base from 2 to 62, it has digits 0-9A-Za-z and no leading
 * zeros. In a named base, the number is an id, and size is its size in bytes.
 */
export function encode (value, base, size) {
  const text = named(base, size)
  if (text) return text.encode(value)
  checkBase(base)
  return base <= 36 ? value.toString(base).toUpperCase() : large(value, base)
}

// Numbers with this many digits of base 62 are below 2^53.
const chunk = 8

function large (value, base) {
  const power = BigInt(base ** chunk)
  let text = ''
  for (; value >= power; value /= power) text = small(Number(value % power), base).padStart(chunk, '0') + text
  return small(Number(value), base) + text
}

function small (value, base) {
  let text = ''
  do {
    text = base62[value % base] + text
    value = Math.floor(value / base)
  } while (value > 0)
  return text
}

/** Reads what encode returns for an id of size bytes. Leading zeros are allowed. */
export function decode (text, base, size) {
  const own = named(base, size)
  if (own) return own.decode(text)
  checkBase(base)
  const highest = highestOf(size)
  const maxLength = encode(highest, base).length
  if (text.length < 1 || text.length > maxLength) throw none(text, `1 to ${maxLength} digits`)
  if (base === 16) text = upper(text)
  const value = number(text, base62.slice(0, base))
  if (value > highest) throw none(text, `a number up to ${highest}`)
  return value
}

// Only of ASCII: other letters, such as U+017F, also have upper case in ASCII.
const upper = text => text.replace(/[a-z]/g, letter => letter.toUpperCase())

const highestOf = size => (1n << BigInt(size * 8)) - 1n

function number (text, digits) {
  const base = BigInt(digits.length)
  let value = 0n
  for (const c of text) {
    const digit = digits.indexOf(c)
    if (digit < 0) throw none(text, `digits from ${digits}`)
    value = value * base + BigInt(digit)
  }
  return value
}

function none (text, what) {
  return new SyntaxError(`${JSON.stringify(text.slice(0, 40))} is not an id: must be ${what}`)
}

// Added to the error for strings that {get, 62} or toString(62) may return: ids since 1971 have at least 17 digits.
const unpadded = text => /^[0-9A-Za-z]{17,21}$/.test(text) ? '; parse(text, 62) reads digits without leading zeros' : ''

function checkBase (base) {
  if (!Number.isInteger(base) || base < 2 || base > 62) throw new RangeError(`the base is ${String(base)}: must be 2 to 62, crockford, or for 16 bytes uuid`)
}

/** An id's bytes in hexadecimal, lower case. */
export function hex (value, size) {
  return value.toString(16).padStart(size * 2, '0')
}

/** The form of a UUID, for 16 bytes. It is also read in braces or after urn:uuid:. */
export const uuid = {
  encode (value) {
    const text = hex(value, 16)
    return `${text.slice(0, 8)}-${text.slice(8, 12)}-${text.slice(12, 16)}-${text.slice(16, 20)}-${text.slice(20)}`
  },
  decode (text) {
    const bare = text.replace(/^\{(.*)\}$|^urn:uuid:/i, '$1')
    if (!/^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i.test(bare)) throw none(text, 'a UUID')
    return BigInt('0x' + bare.replaceAll('-', ''))
  }
}

const pairsOf = alphabet => Array.from({ length: 1024 }, (_, i) => alphabet[i >> 5] + alphabet[i & 31])

// Writes numbers in base 32, ten digits at a time.
function digits32 (alphabet) {
  const pairs = pairsOf(alphabet)
  return value => {
    let text = ''
    do {
      const ten = Number(BigInt.asUintN(50, value))
      const high = Math.floor(ten / 2 ** 20)
      text = pairs[high >> 20] + pairs[high >> 10 & 1023] + pairs[high & 1023] + pairs[ten >> 10 & 1023] + pairs[ten & 1023] + text
      value >>= 50n
    } while (value)
    return text
  }
}

const writers = { [base62]: value => large(value, 62), [crockford]: digits32(crockford), [sno]: digits32(sno) }

/** Digits in an alphabet, padded to the length of the highest id's text, so that they sort as the ids do. */
function fixed (alphabet, size, read = text => text) {
  const digits = encode(highestOf(size), alphabet.length).length
  const write = writers[alphabet]
  return {
    encode: value => write(value).padStart(digits, alphabet[0]).slice(-digits),
    decode (text) {
      if (text.length !== digits) throw none(text, `${digits} digits${alphabet === base62 ? unpadded(text) : ''}`)
      const value = number(read(text), alphabet)
      if (value > highestOf(size)) throw none(text, `at most ${this.encode(highestOf(size))}`)
      return value
    }
  }
}

function named (base, size) {
  if (base === 'crockford') return canonicalOf('ulid', size)
  if (base === 'uuid' && size === 16) return uuid
}

/** The functions that write and read a format's own text, by the name of the text. */
export function canonicalOf (name, size) {
  switch (name) {
    case 'base62': return fixed(base62, size)
    case 'sno': return fixed(sno, size)
    case 'ulid': return fixed(crockford, size, upper)
    case 'uuid': return uuid
    case 'decimal': return { encode: String, decode: text => decode(text, 10, size) }
  }
}
