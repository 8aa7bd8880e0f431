/** A guest writes a numbered log, each record sealed with the one before it, while its disk grows, is snapshotted,
 *  backed up and moved with it, another disk comes and goes, and processes are killed. Every record that the disk had
 *  acknowledged is there afterwards, and what is made of each snapshot and backup is the log as it was at that point.
 *  The disks are read here, from their files: nothing that wrote them takes part. */
import { createHash } from 'node:crypto'
import { readdir, readFile, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { runProgram } from '../../agents/node/run-program.ts'
import { eventually } from '../eventually.ts'
import { type Console, Customer, type Operation } from './customer.ts'
import { clearAway, newFolder, Product } from './product.ts'
import { UNREAD } from './warnings.ts'

const RECORD_BYTES = 512
const SUM_CHARACTERS = 32
/** Longer than the log ever gets. */
const LOG_MEBIBYTES = 4
const KILLS = ['controllers', 'agent-eu-1a-1', 'agent-eu-1a-2'] as const

let data: string
let product: Product
let customer: Customer
const start = () => Product.start({ data, flags: ['--hypervisor', 'qemu', '--nodes', 'eu-1a=2'], warnings: UNREAD })

beforeAll(async () => {
  data = await newFolder()
  product = await start()
  customer = await Customer.signUp(() => product, 'writer@example.com')
  await customer.addSshKey()
})
afterAll(() => clearAway(product, data))

/** In the guest: record N stands in block N, and is acknowledged once it is on the disk. */
const writer = (serial: string): string =>
  `D=$(grep -l ${serial} /sys/block/vd*/serial | cut -d/ -f4); (n=0; s=start; while [ ! -e /tmp/stop ]; do ` +
  'n=$((n+1)); s=$(echo "$s $n" | md5sum | cut -c1-32); ' +
  'printf "%08d %s" $n $s | dd of=/dev/$D bs=512 seek=$n conv=notrunc,fsync 2>/dev/null && echo "kept $n."; ' +
  'sleep 0.1; done; echo "writer ended") &\n'

const sumAfter = (sum: string, number: number): string =>
  createHash('md5').update(`${sum} ${number}\n`).digest('hex').slice(0, SUM_CHARACTERS)

/** How many records of the log the disk holds, from the first on. Throws when anything else is behind them. */
async function recordsIn(file: string): Promise<number> {
  const raw = join(data, 'read.raw')
  await runProgram('qemu-img', [
    'dd',
    '-f',
    'qcow2',
    '-O',
    'raw',
    'bs=1M',
    `count=${LOG_MEBIBYTES}`,
    `if=${file}`,
    `of=${raw}`,
  ])
  const content = (await readFile(raw)).toString('latin1')
  await rm(raw)
  let [number, sum] = [0, 'start']
  for (;;) {
    const next = sumAfter(sum, number + 1)
    const from = (number + 1) * RECORD_BYTES
    if (!content.slice(from).startsWith(`${String(number + 1).padStart(8, '0')} ${next}`)) break
    ;[number, sum] = [number + 1, next]
  }
  expect(content.slice((number + 1) * RECORD_BYTES).replaceAll('\0', ''), `behind record ${number}`).toBe('')
  return number
}

interface Made {
  readonly id: string
  readonly operation: Operation
}
async function made(noun: 'storage' | 'snapshot' | 'backup', path: string, body: object): Promise<Made> {
  const answer = await customer.request<Record<string, { readonly id: string }> & { readonly operation: Operation }>(
    'POST',
    path,
    body,
  )
  expect(answer.status, JSON.stringify(answer.body)).toBe(202)
  return { id: answer.body[noun]?.id ?? '', operation: answer.body.operation }
}
const succeeded = async ({ id }: Operation): Promise<void> =>
  expect(await customer.finished(id)).toMatchObject({ status: 'succeeded', error: '' })

/** The file of a storage's disk, wherever it lies. */
async function fileOf(storageId: string): Promise<string> {
  const { items } = await product.kubernetes('/apis/svccloud.dev/v1alpha1/storages')
  const uid = items
    .map(({ metadata }) => metadata as { name: string; uid?: string })
    .find((one) => one.name === storageId)?.uid
  const files = await readdir(data, { recursive: true })
  const file = files.find((name) => uid !== undefined && name.endsWith(`${uid}.qcow2`))
  if (file === undefined)
    throw new Error(`no disk of ${storageId} among ${files.filter((name) => name.endsWith('.qcow2'))}`)
  return join(data, file)
}

it('loses no record and mixes none, and every restore is the point that it names', { timeout: 900_000 }, async () => {
  const { server, operation } = await customer.createServer({
    zone: 'eu-1a',
    hostname: 'writer',
    plan: 'tiny',
    template: 'tiny-linux',
  })
  const [log, other] = [
    await made('storage', '/v1/storages', { zone: 'eu-1a', size_gibibytes: 1 }),
    await made('storage', '/v1/storages', { zone: 'eu-1a', size_gibibytes: 1 }),
  ]
  for (const each of [operation, log.operation, other.operation]) await succeeded(each)
  const attach = (id: string) => customer.change('POST', `/v1/storages/${id}/attach`, { server_id: server.id })
  const { body } = await customer.request<{ storage: { serial: string } }>('GET', `/v1/storages/${log.id}`)
  await succeeded(await attach(log.id))

  let console: Console = customer.console(server.id)
  const reopen = () => {
    console.close()
    console = customer.console(server.id)
  }
  const acknowledged = () => Number([...console.shown.matchAll(/kept (\d+)\./g)].at(-1)?.[1] ?? 0)
  const writesOn = async () => {
    const before = acknowledged()
    await eventually('the guest to write on', () => acknowledged() > before + 1)
  }
  await console.see(/root@writer:~# /, 0)
  await console.type(writer(body.storage.serial))
  await writesOn()

  /** A point, and between which records it lies. A process is killed while it comes about. */
  const points: { readonly from: object; readonly least: number; readonly most: number }[] = []
  async function point(noun: 'snapshot' | 'backup', victim: (typeof KILLS)[number]): Promise<string> {
    const least = acknowledged()
    const taken = await made(noun, `/v1/storages/${log.id}/${noun}s`, {})
    await product.killComponent(victim)
    await succeeded(taken.operation)
    await writesOn()
    points.push({ from: { [`source_${noun}_id`]: taken.id }, least, most: acknowledged() })
    return taken.id
  }

  const firstBackup = await point('backup', 'controllers')
  await succeeded(await customer.change('POST', `/v1/storages/${log.id}/resize`, { size_gibibytes: 2 }))
  const seen = console.shown.length
  await console.type('echo "has $(cat /sys/block/$D/size) sectors"\n')
  expect(await console.see(/has \d+ sectors/, seen)).toBe(`has ${(2 * 1024 ** 3) / RECORD_BYTES} sectors`)
  await point('snapshot', 'agent-eu-1a-1')
  await succeeded(await attach(other.id))
  await succeeded(await customer.change('POST', `/v1/servers/${server.id}/move`, {}))
  await writesOn()
  await point('snapshot', 'agent-eu-1a-2')
  await succeeded(await customer.change('POST', `/v1/storages/${other.id}/detach`))
  await product.killEverything()
  product = await start()
  reopen()
  await writesOn()
  await point('backup', 'agent-eu-1a-1')

  await console.type('touch /tmp/stop; wait; sync; echo "all"" is said"\n')
  await console.see(/all is said/, 0)
  const last = acknowledged()
  console.close()
  await succeeded(await customer.change('POST', `/v1/storages/${log.id}/detach`))
  expect(await recordsIn(await fileOf(log.id))).toBe(last)

  for (const { from, least, most } of points) {
    const copy = await made('storage', '/v1/storages', from)
    await succeeded(copy.operation)
    const records = await recordsIn(await fileOf(copy.id))
    expect(records, JSON.stringify(from)).toBeGreaterThanOrEqual(least)
    expect(records, JSON.stringify(from)).toBeLessThanOrEqual(most)
  }
  const restored = await customer.change('POST', `/v1/backups/${firstBackup}/restore`, {})
  await succeeded(restored)
  const records = await recordsIn(await fileOf(log.id))
  expect(records).toBeGreaterThanOrEqual(points[0]?.least ?? 0)
  expect(records).toBeLessThanOrEqual(points[0]?.most ?? 0)
})
