/** A guest that counts is moved between three nodes with real QEMU twenty times, while the parts that move it are
 *  killed. It counts in its memory and writes each number to its disk: a copy that was left behind, a disk that went
 *  back or a memory that was lost would show in either. */
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { eventually } from '../eventually.ts'
import { Customer, type Operation } from './customer.ts'
import { clearAway, newFolder, Product } from './product.ts'
import { UNREAD } from './warnings.ts'

const MOVES = 20
/** A kill may cost a move, never the guest. */
const TRIES_MAXIMUM = 30
const LIMIT_MILLISECONDS = 900_000
/** Each number once, in memory, on the disk and on the console. */
const COUNT = 'n=0; while :; do n=$((n+1)); echo $n >> /data/count; sync; echo "counted $n."; sleep 0.3; done\n'
const CHECK = 'awk \'$1 != NR { print "broken at", NR; exit } END { print "whole to", NR, "lines" }\' /data/count\n'

let data: string
let product: Product
let customer: Customer

beforeAll(async () => {
  data = await newFolder()
  product = await Product.start({ data, flags: ['--hypervisor', 'qemu', '--nodes', 'eu-1a=3'], warnings: UNREAD })
  customer = await Customer.signUp(() => product, 'mover@example.com')
  await customer.addSshKey()
})
afterAll(() => clearAway(product, data))

const nodeOf = async (id: string): Promise<string> => {
  const [row] = await product.query('select node from placement where server_id = $1', [id])
  return String(row?.['node'])
}

/** The newest number that the guest shows where it is now. Throws when the numbers there do not only grow. */
const newestCount = (id: string): Promise<number> =>
  eventually('the guest to count', async () => {
    const console = customer.console(id)
    try {
      await console.see(/counted \d+\.\r?\n[^]*counted \d+\.\r?\n/, 0, 10_000)
      const numbers = [...console.shown.matchAll(/counted (\d+)\./g)].map((match) => Number(match[1]))
      numbers.forEach((number, index) =>
        expect(number, `after ${numbers.slice(Math.max(0, index - 3), index)}`).toBeGreaterThan(
          numbers[index - 1] ?? 0,
        ),
      )
      return numbers.at(-1)
    } finally {
      console.close()
    }
  })

/** While parts are being replaced the API may answer 503; a move that is under way already is the one. */
const beginMove = (id: string): Promise<Operation> =>
  eventually('a move to be accepted', async () => {
    const { active_operation: active } = (await customer.server(id)) as { readonly active_operation?: Operation | null }
    return active ?? customer.change('POST', `/v1/servers/${id}/move`, {})
  })

it(
  'moves a guest that counts twenty times while parts are killed, and the count never jumps back or forks',
  async () => {
    const { server, operation } = await customer.createServer({
      zone: 'eu-1a',
      hostname: 'counter',
      plan: 'tiny',
      template: 'tiny-linux',
    })
    expect(await customer.finished(operation.id)).toMatchObject({ status: 'succeeded' })
    const first = customer.console(server.id)
    await first.see(/root@counter:~# /, 0)
    await first.type(COUNT)
    await first.see(/counted 3\./, 0)
    first.close()

    let [moves, count] = [0, 3]
    for (let attempt = 0; moves < MOVES && attempt < TRIES_MAXIMUM; attempt += 1) {
      const from = await nodeOf(server.id)
      const move = await beginMove(server.id)
      // Four of five moves lose a part, each time at another moment.
      const victims = [undefined, `agent-${from}`, 'controllers', `agent-eu-1a-${1 + (attempt % 3)}`, 'apiserver']
      const victim = victims[attempt % victims.length]
      await sleep((attempt * 137) % 900)
      if (victim !== undefined) await product.killComponent(victim)
      const { status } = await customer.finished(move.id)
      if (status === 'succeeded') moves += 1
      expect(await nodeOf(server.id)).toEqual(status === 'succeeded' ? expect.not.stringMatching(`^${from}$`) : from)
      const next = await newestCount(server.id)
      expect(next).toBeGreaterThan(count)
      count = next
      expect(await product.guests()).toHaveLength(1)
    }
    expect(moves).toBe(MOVES)

    const last = customer.console(server.id)
    await last.see(/counted/, 0)
    await last.type('\x03')
    const shown = last.shown.length
    await last.type(CHECK)
    await last.see(/whole to \d+ lines/, shown)
    last.close()
    const [, lines] = /whole to (\d+) lines/.exec(last.shown) ?? []
    expect(Number(lines)).toBeGreaterThanOrEqual(count)
    expect(await customer.server(server.id)).toMatchObject({ state: 'started' })
  },
  LIMIT_MILLISECONDS,
)
