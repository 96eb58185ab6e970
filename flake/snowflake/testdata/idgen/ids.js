// Runs flake-idgen with the options and times of each case on standard input, and prints the
// results of each case.
const FlakeId = require('flake-idgen')
const format = require('biguint-format')

let now
Date.now = () => now

const call = (generator, at) => {
  now = at
  try {
    const id = generator.next()
    return {
      hex: id.toString('hex'),
      number: format(id, 'hex', { prefix: '0x' }),
      decimal: format(id, 'dec'),
      binary: format(id, 'bin', { groupsize: 4 })
    }
  } catch (err) {
    return { error: err.message }
  }
}

const cases = JSON.parse(require('fs').readFileSync(0, 'utf8'))
const results = cases.map(({ options, times }) => {
  const generator = new FlakeId(options)
  return { id: generator.id, calls: times.map(at => call(generator, at)) }
})
process.stdout.write(JSON.stringify(results))
