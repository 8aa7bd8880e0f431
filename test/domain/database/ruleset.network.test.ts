/** Who may connect to the machine of a database, checked with the kernel. */
import { spawn } from 'node:child_process'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { runProgram } from '../../../agents/node/run-program.ts'
import { databaseRuleset } from '../../../domain/database/ruleset.ts'
import { newUuid, systemRandom } from '../../../kit/sys/random.ts'
import { until } from '../../eventually.ts'
import { PYTHON } from '../../python.ts'

const id = newUuid(systemRandom).slice(0, 8)
const [machine, guest] = [`dm-${id}`, `dg-${id}`]
const inside = (namespace: string, ...command: string[]) => runProgram('ip', ['netns', 'exec', namespace, ...command])

const LISTEN = `import socket, time
for family, host in ((socket.AF_INET, "0.0.0.0"), (socket.AF_INET6, "::")):
    for port in (5432, 22):
        one = socket.socket(family)
        one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6: one.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        one.bind((host, port)); one.listen(); globals()[f"{family}{port}"] = one
time.sleep(600)`
const CONNECT = `import socket, sys
family = socket.AF_INET6 if ":" in sys.argv[1] else socket.AF_INET
client = socket.socket(family); client.settimeout(1); client.bind((sys.argv[1], 0))
try: client.connect((sys.argv[2], int(sys.argv[3]))); print("in")
except OSError: print("out")`

const connect = async (from: string, to: string, port: number): Promise<string> =>
  (await inside(guest, PYTHON, '-I', '-S', '-c', CONNECT, from, to, String(port))).trim()

let stop = () => {}
beforeAll(async () => {
  for (const namespace of [machine, guest]) await runProgram('ip', ['netns', 'add', namespace])
  const pair = ['peer', 'name', 'eth0', 'netns', guest]
  await runProgram('ip', ['link', 'add', 'eth0', 'netns', machine, 'type', 'veth', ...pair])
  const addresses = { [machine]: ['10.9.0.2/16', 'fd09::2/64'], [guest]: ['10.9.0.3/16', '10.9.1.3/16', 'fd09::3/64'] }
  for (const [namespace, texts] of Object.entries(addresses)) {
    for (const text of texts) {
      const isIpv6 = text.includes(':')
      await inside(namespace, 'ip', 'address', 'add', text, 'dev', 'eth0', ...(isIpv6 ? ['nodad'] : []))
    }
    for (const device of ['lo', 'eth0']) await inside(namespace, 'ip', 'link', 'set', device, 'up')
  }
  const listener = spawn('ip', ['netns', 'exec', machine, PYTHON, '-I', '-S', '-c', LISTEN], { stdio: 'inherit' })
  stop = () => void listener.kill()
  await until(
    'somebody who listens',
    () => connect('10.9.1.3', '10.9.0.2', 22),
    (answer) => answer === 'in',
  )
})
afterAll(async () => {
  stop()
  for (const namespace of [machine, guest]) await runProgram('ip', ['netns', 'delete', namespace])
})

it('lets the ranges of the network in to PostgreSQL, nobody else, and nobody to anything else', async () => {
  expect(await connect('10.9.1.3', '10.9.0.2', 5432), 'before').toBe('in')
  const text = databaseRuleset(['10.9.0.0/24', 'fd09::/64'])
  await inside(machine, 'sh', '-c', 'printf %s "$1" | nft -f -', 'sh', text)
  expect(await connect('10.9.0.3', '10.9.0.2', 5432)).toBe('in')
  expect(await connect('fd09::3', 'fd09::2', 5432)).toBe('in')
  expect(await connect('10.9.1.3', '10.9.0.2', 5432), 'of another range').toBe('out')
  expect(await connect('10.9.0.3', '10.9.0.2', 22), 'to something else').toBe('out')
  expect(await connect('fd09::3', 'fd09::2', 22), 'to something else').toBe('out')
})
