/** Groups, another plan and a rebuild with real guests. The tests build on each other. */
import { afterAll, beforeAll, expect, it } from 'vitest'
import { eventually, until } from '../eventually.ts'
import { Customer } from './customer.ts'
import { clearAway, newFolder, Product } from './product.ts'

interface Group {
  readonly id: string
  readonly member_count: number
  readonly members: readonly string[]
  readonly unmet_members: readonly string[]
}

let data: string
let product: Product
let customer: Customer
let group: Group
const servers: string[] = []

beforeAll(async () => {
  data = await newFolder()
  product = await Product.start({ data, flags: ['--hypervisor', 'qemu'], warnings: [] })
  customer = await Customer.signUp(() => product, 'first@example.com')
  await customer.addSshKey()
})
afterAll(() => clearAway(product, data))

const wish = (hostname: string) => ({
  zone: 'eu-1a',
  hostname,
  plan: 'tiny',
  template: 'tiny-linux',
  server_group_id: group.id,
})
const readGroup = async () =>
  (await customer.request<{ server_group: Group }>('GET', `/v1/server-groups/${group.id}`)).body.server_group
const done = async (operation: { readonly id: string }) =>
  expect(await customer.finished(operation.id)).toMatchObject({ status: 'succeeded', error: '' })
const nodeOf = async (id: string) =>
  (await product.query(`select node from placement where server_id = '${id}'`))[0]?.['node']

/** At its end, but for the host keys, which the guest prints when they are made. */
const KEYS = '-----BEGIN SSH HOST KEY KEYS-----\\r?\\n(ssh|ecdsa)[^#]*-----END SSH HOST KEY KEYS-----\\s*'
const AT_PROMPT = new RegExp(`root@[^\\n]*:~# (\\u001b\\[6n)?(${KEYS})?$`)

/** What the command says in the guest. */
async function inGuest(id: string, command: string): Promise<string> {
  const console = customer.console(id)
  try {
    // The last thing shown: what a guest before this one showed is there too. The shell asks the terminal where its
    // cursor is.
    await console.see(AT_PROMPT, 0)
    const from = console.shown.length
    // The line itself is shown too, and broken where it is long, and the guest prints its host keys when they are made:
    // only what the shell makes of the sums marks the answer's lines.
    await console.type(`{ ${command}; } | sed "s/^/said-$((40 + 1)) /"; echo end-$((40 + 2))\n`)
    await console.see(/end-42/, from)
    const said = [...console.shown.slice(from).matchAll(/said-41 (.*?)\r?$/gm)].map(([, line]) => line)
    if (said.length === 0) throw new Error(`the guest said nothing: ${JSON.stringify(console.shown)}`)
    return said.join('\n')
  } finally {
    console.close()
  }
}

it('keeps the servers of a strict group on different nodes, and refuses the one that would share', async () => {
  const made = await customer.request<{ server_group: Group }>('POST', '/v1/server-groups', {
    name: 'front',
    zone: 'eu-1a',
    strict: true,
  })
  expect(made.status).toBe(201)
  group = made.body.server_group
  for (const hostname of ['front-1', 'front-2']) {
    const { server, operation } = await customer.createServer(wish(hostname))
    servers.push(server.id)
    await done(operation)
  }
  expect(new Set(await Promise.all(servers.map(nodeOf))).size).toBe(2)
  expect(await readGroup()).toMatchObject({ member_count: 2, members: servers, unmet_members: [] })
  expect(await customer.request('POST', '/v1/servers', wish('front-3'))).toMatchObject({
    status: 503,
    body: { reason: 'no_distinct_failure_domain' },
  })
  expect(await customer.request('DELETE', `/v1/server-groups/${group.id}`)).toMatchObject({
    status: 409,
    body: { reason: 'in_use' },
  })
})

it('gives a stopped server another plan: its guest has the memory and the disk, and finds what it wrote', async () => {
  const [id = ''] = servers
  expect(await inGuest(id, 'echo kept > /data/mark; sync; cat /sys/class/block/vda/size')).toBe(String(2 ** 21))
  expect(await customer.request('POST', `/v1/servers/${id}/change-plan`, { plan: 'starter-1c-1g' })).toMatchObject({
    status: 409,
    body: { reason: 'server_not_stopped' },
  })
  await done(await customer.change('POST', `/v1/servers/${id}/stop`, {}))
  await done(await customer.change('POST', `/v1/servers/${id}/change-plan`, { plan: 'starter-1c-1g', start: true }))
  await until(
    'the server to start',
    () => customer.server(id),
    ({ state }) => state === 'started',
    120_000,
  )
  expect(await customer.server(id)).toMatchObject({
    plan: 'starter-1c-1g',
    memory_mebibytes: 1_024,
    storage_gibibytes: 10,
  })
  const [mark, size, memory] = (
    await inGuest(
      id,
      "cat /data/mark /sys/class/block/vda/size; awk '/MemTotal/ { print int($2 / 1024) }' /proc/meminfo",
    )
  ).split(/\r?\n/)
  expect([mark, size]).toEqual(['kept', String(10 * 2 ** 21)])
  expect(Number(memory)).toBeGreaterThan(700)
})

it('rebuilds a started server: the disk is new, the server is the same', async () => {
  const [id = ''] = servers
  const before = await customer.server(id)
  await done(await customer.change('POST', `/v1/servers/${id}/rebuild`, { stop: true }))
  const after = await customer.server(id)
  expect(after).toMatchObject({ state: 'started', hostname: before.hostname, plan: 'starter-1c-1g' })
  expect(await inGuest(id, 'ls /data/mark 2>/dev/null | wc -l; cat /sys/class/block/vda/size')).toMatch(
    new RegExp(`^0\\r?\\n${10 * 2 ** 21}$`),
  )
  expect(await product.guests()).toHaveLength(2)
  await eventually(
    'the old disk to go',
    async () => (await product.kubernetes('/apis/svccloud.dev/v1alpha1/volumes')).items.length === 2,
  )
})

it('leaves nothing', async () => {
  for (const id of servers) await done(await customer.change('DELETE', `/v1/servers/${id}`))
  expect(await product.guests()).toEqual([])
  expect((await customer.request('DELETE', `/v1/server-groups/${group.id}`)).status).toBe(204)
  await eventually(
    'the group to go',
    async () => (await product.kubernetes('/apis/svccloud.dev/v1alpha1/servergroups')).items.length === 0,
  )
})
