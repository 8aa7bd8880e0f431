/** Stores that are put back to an older state, under guests that write all the time: Kubernetes, PostgreSQL, or both.
 *  What is missing then is no order: no guest ends, none is started beside it, no disk is made anew, nothing that is in
 *  use is given again, and the newest stores find everything as it was. */
import { execFile } from 'node:child_process'
import { mkdir, readdir, readFile, readlink, rename, rm, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { defined } from '../../domain/defined.ts'
import { openExchange } from '../../kit/s3/exchange.ts'
import { openS3, type S3 } from '../../integrations/object-storage/s3.ts'
import { systemClock } from '../../kit/sys/clock.ts'
import { environment } from '../../kit/sys/process.ts'
import { TIERS } from '../../tools/tiers.ts'
import { until } from '../eventually.ts'
import { type Console, Customer, type Operation, type Server } from './customer.ts'
import { clearAway, guestsOf, newFolder, Product, refusedStart } from './product.ts'
import { UNREAD } from './warnings.ts'

const run = promisify(execFile)
const FLAGS = ['--hypervisor', 'qemu', '--nodes', 'eu-1a=2']
const ZONE = 'eu-1a'
const STORES = ['kubernetes', 'postgres'] as const
type StoreName = (typeof STORES)[number]
const STORY_MILLISECONDS = 900_000
/** Sweeps come every two minutes, and within seconds of a start. */
const SWEEP_MILLISECONDS = 300_000
const CONTENT = Buffer.from('kept')

let data: string
let product: Product
let customer: Customer
let made: Made
/** What everything must be like at the end. */
let before: Seen

interface Made {
  /** Has an attached disk and a floating IP since before the copy. */
  readonly stays: Server
  /** Moves after the copy, with a disk that is on its host only. */
  readonly moves: Server
  /** Is deleted after the copy. */
  readonly goes: Server
  /** Is made after the copy, with a disk and a floating IP. */
  readonly comes: Server
  /** Of the disk on the host of `moves`. */
  readonly localStorage: string
  /** In use after the copy, the last ones since then. */
  readonly floatingIps: readonly FloatingIp[]
}
interface FloatingIp {
  readonly id: string
  readonly address: string
  readonly server_id: string | null
}

const start = async () => void (product = await Product.start({ data, flags: FLAGS, warnings: UNREAD }))
const copyOf = (moment: string, store: StoreName): string => join(data, 'copies', moment, store)
/** With owners and modes: PostgreSQL does not start on files of others. */
const copyFolder = (from: string, to: string) => run('cp', ['-a', from, to])
async function keepCopies(moment: string): Promise<void> {
  await mkdir(join(data, 'copies', moment), { recursive: true })
  for (const store of STORES) await copyFolder(join(data, store), copyOf(moment, store))
}
async function putBack(moment: string, stores: readonly StoreName[] = STORES): Promise<void> {
  for (const store of stores) {
    await rm(join(data, store), { recursive: true, force: true })
    await copyFolder(copyOf(moment, store), join(data, store))
  }
}

async function ask<Body>(method: string, path: string, status: number, body?: object): Promise<Body> {
  const answer = await customer.request<Body>(method, path, body)
  expect(answer.status, JSON.stringify(answer.body)).toBe(status)
  return answer.body
}
async function succeed(operation: Operation | null | undefined): Promise<void> {
  if (operation === null || operation === undefined) throw new Error('no operation began')
  expect(await customer.finished(operation.id)).toMatchObject({ status: 'succeeded', error: '' })
}
const change = async (method: 'POST' | 'DELETE', path: string, body?: object) =>
  succeed(await customer.change(method, path, body))

async function newServer(hostname: string): Promise<Server> {
  const { server, operation } = await customer.createServer({
    zone: ZONE,
    hostname,
    plan: 'tiny',
    template: 'tiny-linux',
    public_ipv4: true,
  })
  await succeed(operation)
  return server
}
async function newStorage(tier: 'standard' | 'local-nvme', serverId: string): Promise<string> {
  interface Begun {
    readonly storage: { readonly id: string }
    readonly operation: Operation
  }
  const body = { zone: ZONE, size_gibibytes: 1, tier }
  const { storage, operation } = await ask<Begun>('POST', '/v1/storages', 202, body)
  await succeed(operation)
  await change('POST', `/v1/storages/${storage.id}/attach`, { server_id: serverId })
  return storage.id
}
const newFloatingIp = async (serverId?: string): Promise<FloatingIp> => {
  const body = { zone: ZONE, ...defined({ server_id: serverId }) }
  return (await ask<{ floating_ip: FloatingIp }>('POST', '/v1/floating-ips', 201, body)).floating_ip
}
const list = async <Item>(path: string): Promise<readonly Item[]> =>
  (await ask<{ items: readonly Item[] }>('GET', path, 200)).items

/** One line more a second, on the disk before it is shown. */
const WRITER = 'n=0; while :; do n=$((n+1)); echo $n >> /data/count; sync; echo "kept $n"; sleep 1; done &\n'
async function beginWriting({ id }: Server): Promise<void> {
  const console = customer.console(id)
  await console.see(/:~# /, 0)
  await console.type(WRITER)
  await console.see(/kept \d+\r?\n/, 0)
  console.close()
}
const lastKept = (shown: string): number | undefined => {
  const last = [...shown.matchAll(/kept (\d+)\r?\n/g)].at(-1)?.[1]
  return last === undefined ? undefined : Number(last)
}
/** Of the guests that are running, by process: the last number that the guest said it had on its disk. */
async function counts(): Promise<ReadonlyMap<number, number | undefined>> {
  const guests = await guestsOf(data)
  return new Map(
    await Promise.all(
      guests.map(async (pid) => {
        const home = await readlink(`/proc/${pid}/cwd`)
        return [pid, lastKept(await readFile(join(home, 'console.log'), 'latin1'))] as const
      }),
    ),
  )
}

interface Seen {
  /** Process and home of each guest. */
  readonly guests: readonly string[]
  /** Path and inode of each disk. */
  readonly disks: readonly string[]
}
async function look(): Promise<Seen> {
  const guests = await Promise.all(
    (await guestsOf(data)).map(async (pid) => {
      // the 22nd value is the moment of its start
      const begun = (await readFile(`/proc/${pid}/stat`, 'utf8')).split(') ')[1]?.split(' ')[19]
      return `${pid} since ${begun} in ${(await readlink(`/proc/${pid}/cwd`)).slice(data.length)}`
    }),
  )
  const disks: string[] = []
  for (const folder of ['nodes', 'shared'])
    for (const name of await readdir(join(data, folder), { recursive: true }))
      if (/volumes\/.*\.(qcow2|raw)$/.test(name)) {
        const { ino } = await stat(join(data, folder, name))
        disks.push(`${folder}/${name} ${ino}`)
      }
  return { guests: guests.toSorted(), disks: disks.toSorted() }
}
const disksOf = ({ disks }: Seen, id: string): readonly string[] => disks.filter((disk) => disk.includes(id))

/** No guest ended or began, no disk went or came, and whoever wrote goes on. */
async function expectUntouched(): Promise<void> {
  expect(await look()).toEqual(before)
  const then = await counts()
  expect([...then.values()]).not.toContain(undefined)
  await until('every guest to write on', counts, (now) =>
    [...then].every(([pid, count]) => (now.get(pid) ?? 0) > (count ?? 0)),
  )
  expect(await look()).toEqual(before)
}

async function staff(...words: readonly string[]): Promise<string> {
  const keys = (await readFile(join(data, 'sealing-keys'), 'utf8')).trim()
  const settings = { ...environment(), DATABASE_URL: product.endpoints.postgres_url, SVCCLOUD_SEALING_KEYS: keys }
  return (await run('npm', ['run', '--silent', 'staff', '--', ...words], { env: settings })).stdout
}
/** What was claimed a moment ago may not be written yet, so for ten minutes no sweep calls it missing. */
async function ageClaims(): Promise<void> {
  for (const table of ['placement', 'storage_claim'])
    await product.query(`update ${table} set claimed_at = claimed_at - interval '1 hour'`)
}
const WHY = ['--by', 'sam@example.com', '--reason', 'a store was put back']
const kindsOf = (text: string): readonly string[] => [...text.matchAll(/^\w+(?=\/)/gm)].map(([kind]) => kind)
async function listMissing(isMet: (text: string) => boolean): Promise<readonly string[]> {
  const text = await until('the look for what is missing', () => staff('missing'), isMet, SWEEP_MILLISECONDS)
  return text.trim().split('\n')
}

interface ObjectStorage {
  readonly endpoint: string
  readonly bucket_prefix: string
}
interface Credentials {
  readonly access_key_id: string
  readonly secret_access_key: string
}
/** The buckets of the account, and a way to one. */
async function openBuckets(): Promise<{ readonly s3: S3; readonly prefix: string }> {
  const [view] = await list<ObjectStorage>('/v1/object-storage')
  const path = `/v1/object-storage/${ZONE}/credentials`
  const { credentials } = await ask<{ credentials: Credentials }>('GET', path, 200)
  const authority = await readFile(join(data, 'object-storage/ca.crt'), 'utf8')
  const exchange = openExchange({
    url: view?.endpoint ?? '',
    authority,
    credentials: { accessKeyId: credentials.access_key_id, secretAccessKey: credentials.secret_access_key },
    clock: systemClock,
  })
  return { s3: openS3(exchange), prefix: view?.bucket_prefix ?? '' }
}
async function fillBucket(name: string): Promise<void> {
  const { s3, prefix } = await openBuckets()
  await s3.ensureBucket(prefix + name)
  await s3.ask({ method: 'PUT', path: `${prefix}${name}/key`, body: CONTENT })
}
async function expectBuckets(): Promise<void> {
  const { s3, prefix } = await openBuckets()
  expect((await s3.buckets()).names).toEqual([`${prefix}first`, `${prefix}second`])
  for (const name of ['first', 'second'])
    expect((await s3.ask({ method: 'GET', path: `${prefix}${name}/key` })).text).toBe(CONTENT.toString())
}

const stateOf = async ({ id }: Server): Promise<string> => {
  const { status, body } = await customer.request<{ server?: Server }>('GET', `/v1/servers/${id}`)
  return status === 404 ? 'unknown' : (body.server?.state ?? '')
}
const statesOf = async (...servers: readonly Server[]) => await Promise.all(servers.map(stateOf))
const toBe = (what: string, servers: readonly Server[], states: readonly string[]) =>
  until(
    `${what} to be ${states.join(', ')}`,
    () => statesOf(...servers),
    (now) => now.join() === states.join(),
  )

/** Servers of guests that no object names: their hosts report them, and keep them. */
async function unnamed(): Promise<string> {
  const { items } = await product.kubernetes('/apis/svccloud.dev/v1alpha1/nodereports')
  const reports = items as readonly {
    readonly status?: { readonly unnamed?: readonly { server?: { name: string } }[] }
  }[]
  return idsOf(reports.flatMap(({ status }) => status?.unnamed ?? []).map(({ server }) => ({ id: server?.name ?? '' })))
}
const idsOf = (servers: readonly Pick<Server, 'id'>[]): string =>
  servers
    .map(({ id }) => id)
    .toSorted()
    .join()
const toBeReported = (...servers: readonly Server[]) =>
  until('hosts to report the guests that no object names', unnamed, (ids) => ids === idsOf(servers))

/** What is asked for at once, before anybody has looked around: an address that nobody has, and a name that one has. */
async function askForWhatIsInUse(): Promise<void> {
  const { address, id } = await newFloatingIp()
  expect(made.floatingIps.map((used) => used.address)).not.toContain(address)
  const taken = { zone: ZONE, hostname: 'comes', plan: 'tiny', template: 'tiny-linux' }
  expect((await customer.request('POST', '/v1/servers', taken)).status).toBe(409)
  await change('DELETE', `/v1/floating-ips/${id}`)
}

/** Public addresses and buckets are part of it. */
const missing = (
  await Promise.all(['network', 'objects'].map((tier) => TIERS.find(({ name }) => name === tier)?.missing?.()))
).find((why) => why !== undefined)

describe.skipIf(missing !== undefined)(
  `stores of before${missing === undefined ? '' : ` (not here: ${missing})`}`,
  () => {
    beforeAll(async () => {
      data = await newFolder()
      await start()
      customer = await Customer.signUp(() => product, 'ada@example.com')
      await customer.addSshKey()
      const [stays, moves, goes] = await Promise.all(['stays', 'moves', 'goes'].map(newServer))
      if (stays === undefined || moves === undefined || goes === undefined) throw new Error('three were asked for')
      await Promise.all([beginWriting(stays), beginWriting(moves)])
      const storage = await newStorage('standard', stays.id)
      const localStorage = await newStorage('local-nvme', moves.id)
      await ask('POST', '/v1/object-storage', 201, { zone: ZONE })
      await fillBucket('first')
      const first = await newFloatingIp(stays.id)
      await product.stop()
      await keepCopies('older')

      await start()
      const comes = await newServer('comes')
      await beginWriting(comes)
      await newStorage('standard', comes.id)
      await change('DELETE', `/v1/servers/${goes.id}`)
      await change('POST', `/v1/servers/${moves.id}/move`, {})
      const { operation } = await ask<{ operation: Operation }>('POST', `/v1/storages/${storage}/snapshots`, 202, {
        title: 'after',
      })
      await succeed(operation)
      const network = { zone: ZONE, name: 'later', ipv4_cidr: '10.9.0.0/24' }
      await succeed((await ask<{ operation: Operation }>('POST', '/v1/networks', 202, network)).operation)
      await fillBucket('second')
      const floatingIps = [first, await newFloatingIp(comes.id)]
      for (let count = 0; count < 3; count++) floatingIps.push(await newFloatingIp())
      made = { stays, moves, goes, comes, localStorage, floatingIps }
      await ageClaims()
      await product.stop()
      await keepCopies('newest')
      before = await look()
      expect(before.guests).toHaveLength(3)
    }, STORY_MILLISECONDS)
    afterAll(() => clearAway(product, data))

    /** With the stores as they were then; the newest ones are back afterwards, and the product is stopped. */
    async function withOlder(stores: readonly StoreName[], work: () => Promise<void>): Promise<void> {
      await putBack('older', stores)
      await start()
      try {
        await work()
      } finally {
        await product.stop().finally(() => putBack('newest'))
      }
    }

    it('Kubernetes of before', { timeout: STORY_MILLISECONDS }, () =>
      withOlder(['kubernetes'], async () => {
        const { stays, moves, goes, comes, localStorage, floatingIps } = made
        await askForWhatIsInUse()
        await toBe('the servers', [stays, moves, goes, comes], ['started', 'error', 'error', 'unknown'])
        await toBeReported(moves, comes)
        expect(disksOf(await look(), localStorage)).toEqual(disksOf(before, localStorage))

        // Nothing that is missing is given back, and so much is missing that sweeps stop until somebody has looked.
        const kinds = 'FloatingIP FloatingIP FloatingIP FloatingIP Network Server Snapshot Storage'
        const missing = await listMissing((text) => kindsOf(text).join(' ') === kinds)
        expect(missing.join('\n')).toContain('stops sweeps')
        for (const { id } of [...floatingIps.slice(1), comes]) expect(missing.join('\n')).toContain(`/${id}  since`)
        await staff('resume-sweeps', ...WHY)
        expect(await staff('missing')).not.toContain('stops sweeps')
        const given = floatingIps.at(-1)
        const subject = missing.find((line) => line.includes(given?.id ?? '-'))?.split('  ')[0] ?? ''
        expect(subject).toMatch(/^FloatingIP\//)
        await staff('give-up', subject, ...WHY)
        await expect(staff('give-up', 'FloatingIP/nowhere/nothing', ...WHY)).rejects.toThrow(
          'is not among what is missing',
        )
        // Other controllers look within seconds, these ones only every two minutes.
        await product.killComponent('controllers')
        const left = await listMissing((text) => !text.includes(subject))
        expect(left).toEqual(
          missing.filter((line) => !line.startsWith(`${subject} `)).map((line) => line.replace('  stops sweeps', '')),
        )
        const log = await product.query(`select action from audit_entry where action like 'missing.%'`)
        expect(log.map(({ action }) => action)).toEqual(
          expect.arrayContaining(['missing.resume_sweeps', 'missing.give_up']),
        )
        await expectBuckets()
        await expectUntouched()
      }),
    )

    it('PostgreSQL of before', { timeout: STORY_MILLISECONDS }, () =>
      withOlder(['postgres'], async () => {
        const { stays, moves, comes, localStorage } = made
        await askForWhatIsInUse()
        await toBe('the servers', [stays, moves, comes], ['started', 'error', 'error'])
        await toBeReported()
        expect(disksOf(await look(), localStorage)).toEqual(disksOf(before, localStorage))
        await expectBuckets()
        await expectUntouched()
      }),
    )

    it('both of before', { timeout: STORY_MILLISECONDS }, () =>
      withOlder(STORES, async () => {
        const { stays, moves, goes, comes, localStorage } = made
        await toBe('the servers', [stays, moves, goes, comes], ['started', 'error', 'error', 'unknown'])
        await toBeReported(moves, comes)
        expect(disksOf(await look(), localStorage)).toEqual(disksOf(before, localStorage))
        await expectBuckets()
        await expectUntouched()
      }),
    )

    it('the newest again', { timeout: STORY_MILLISECONDS }, async () => {
      const { stays, moves, goes, comes } = made
      await start()
      await toBe('the servers', [stays, moves, goes, comes], ['started', 'started', 'unknown', 'started'])
      expect(await list<FloatingIp>('/v1/floating-ips')).toHaveLength(made.floatingIps.length)
      expect(await list('/v1/snapshots')).toHaveLength(1)
      expect(await list('/v1/networks')).toHaveLength(1)
      await expectBuckets()
      await expectUntouched()
      for (const server of [stays, moves, comes]) await expectEveryLine(server)
      await product.stop()
    })

    /** What a guest said that it had on its disk is there, read from the disk. */
    async function expectEveryLine({ id }: Server): Promise<void> {
      const console: Console = customer.console(id)
      const last = lastKept((await console.see(/kept \d+\r?\n/, 0), console.shown)) ?? 0
      const compare = `seq ${last} > /tmp/all; head -n ${last} /data/count | cmp - /tmp/all`
      await console.ask(
        `echo 3 > /proc/sys/vm/drop_caches; ${compare} && echo all $((${last})).`,
        new RegExp(`all ${last}\\.`),
      )
      console.close()
    }

    it('an empty store beside a full one is refused', { timeout: STORY_MILLISECONDS }, async () => {
      for (const store of STORES) {
        await rename(join(data, store), join(data, `${store}-away`))
        const { code, output } = await refusedStart([...FLAGS, '--data', data, '--no-install'])
        expect(code).not.toBe(0)
        expect(output).toContain(`SVCCLOUD_ACCEPT_EMPTY_STORE=${store}`)
        await rm(join(data, store), { recursive: true, force: true })
        await rename(join(data, `${store}-away`), join(data, store))
      }
      expect(await look()).toEqual(before)
    })
  },
)
