/** The stream of changes of a running product, as its client follows it: two people in one account, an API server that
 *  is killed, and another replica. */
import { spawn } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import { isDeepStrictEqual } from 'node:util'
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import { type Change, changes, createClient, type OtherChange, type Reset } from '../../client/index.ts'
import { SETTINGS_VARIABLE } from '../../kit/sys/settings.ts'
import { until } from '../eventually.ts'
import { Customer } from './customer.ts'
import { clearAway, newFolder, Product } from './product.ts'

let data: string
let product: Product
let ada: Customer
let bob: Customer

beforeAll(async () => {
  data = await newFolder()
  product = await Product.start({
    data,
    flags: ['--hypervisor', 'simulated', '--network', 'user', '--nodes', 'eu-1a=1'],
    warnings: [],
  })
  ada = await Customer.signUp(() => product, 'ada@example.com')
  bob = await ada.invite(() => product, 'bob@example.com')
  await ada.addSshKey()
})
afterAll(() => clearAway(product, data))

type Got = Reset | Change | OtherChange

/** Follows until the test ends. */
function follow(token: string, url = product.endpoints.api_url, cursor?: string) {
  const stop = new AbortController()
  const got: Got[] = []
  let failure: unknown
  const reading = (async () => {
    for await (const change of changes(createClient({ url, token }), { cursor, signal: stop.signal })) got.push(change)
  })().catch((error: unknown) => void (failure = error))
  const close = async () => {
    stop.abort()
    await reading
  }
  onTestFinished(close)
  const observed = () => {
    if (failure !== undefined) throw failure
    return got
  }
  return {
    got,
    close,
    see: (what: string, isIt: (change: Got) => boolean) => until(what, observed, (seen) => seen.some(isIt)),
  }
}
const isReset =
  (reason: string) =>
  (change: Got): boolean =>
    change.event === 'reset' && change.reason === reason
const isServer =
  (id: string, state: string) =>
  (change: Got): boolean =>
    change.event === 'change' &&
    change.type === 'server' &&
    change.id === id &&
    (change.is === 'set' ? change.item.state === state : change.is === state)

const create = (by: Customer, hostname: string) =>
  by.createServer({ zone: 'eu-1a', hostname, plan: 'tiny', template: 'tiny-linux' })
const network = async (by: Customer, name: string): Promise<string> =>
  (await by.request<{ network: { id: string } }>('POST', '/v1/networks', { zone: 'eu-1a', name })).body.network.id
const isItem =
  (wanted: string) =>
  (change: Got): boolean =>
    change.event === 'change' && change.id === wanted

test('two people in one account see what each other does, as lists show it', async () => {
  const [hers, his] = [follow(ada.token), follow(bob.token)]
  await hers.see('the start', isReset('start'))
  await his.see('the start', isReset('start'))
  const { server, operation } = await create(ada, 'shared')
  await his.see('her server to start', isServer(server.id, 'started'))
  await his.see(
    'her operation to end',
    (change) =>
      change.event === 'change' &&
      change.type === 'operation' &&
      change.id === operation.id &&
      change.is === 'set' &&
      change.item.status === 'succeeded',
  )
  await until(
    'the newest state of the stream to be that of the list',
    async () => {
      const { body } = await bob.request<{ items: { id: string }[] }>('GET', '/v1/servers')
      const newest = his.got.findLast((change) => change.event === 'change' && change.id === server.id)
      const item = newest?.event === 'change' && newest.is === 'set' ? newest.item : undefined
      return isDeepStrictEqual(
        item,
        body.items.find(({ id }) => id === server.id),
      )
    },
    (isSame) => isSame,
  )

  await bob.change('DELETE', `/v1/servers/${server.id}`)
  await hers.see('its deletion', isServer(server.id, 'removed'))
})

test('after the API server was killed, readers are sent back to their lists, and see what comes then', async () => {
  const his = follow(bob.token)
  await his.see('the start', isReset('start'))
  const before = await network(ada, 'before')
  await his.see('the network', isItem(before))
  await product.killComponent('apiserver')
  // its memory is lost, and so is what was deleted meanwhile
  await his.see('a reset', isReset('cursor_too_old'))
  const after = await until(
    'a network to be made',
    () => network(ada, 'after'),
    () => true,
  )
  await his.see('the next network', isItem(after))
})

/** Another process of the API, with the settings of the first. Answers its URL. */
async function startReplica(): Promise<string> {
  const pid = (await product.processes()).get('apiserver')
  const words = async (file: string) => (await readFile(`/proc/${pid}/${file}`, 'utf8')).split('\0').filter(Boolean)
  const [program = '', ...line] = await words('cmdline')
  const given = (await words('environ')).find((text) => text.startsWith(`${SETTINGS_VARIABLE}=`)) ?? ''
  // the process that runs has read them
  const settings = JSON.parse(given.slice(SETTINGS_VARIABLE.length + 1)) as Record<string, unknown>
  const own = Object.entries(settings).filter(([name]) => !name.startsWith('webhook'))
  const others = { port: 0, operatorPort: 0, hasPeers: true }
  const child = spawn(program, line, {
    stdio: ['ignore', 'ignore', 'pipe', 'ipc'],
    env: { PATH: process.env['PATH'], [SETTINGS_VARIABLE]: JSON.stringify({ ...Object.fromEntries(own), ...others }) },
  })
  let said = ''
  child.stderr?.on('data', (text: Buffer) => void (said += text.toString()))
  const ended = new Promise<void>((resolve) => void child.once('exit', () => resolve()))
  onTestFinished(async () => {
    child.kill()
    await ended
  })
  const url = new Promise<string>((resolve) => {
    child.on('message', (message: { readonly api_url?: string }) => {
      if (message.api_url !== undefined) resolve(message.api_url)
    })
  })
  const failed = ended.then(() => {
    throw new Error(`the replica ended: ${said}`)
  })
  failed.catch(() => {}) // it ends with the test, too
  return Promise.race([url, failed])
}

test('another replica continues from the cursor of the first, and misses nothing', async () => {
  const url = await startReplica()
  const first = follow(bob.token)
  await first.see('the start', isReset('start'))
  // A cursor is of use elsewhere once it is newer than the start of that replica: the service says so now and then.
  const body = { name: 'known', content: '#!/bin/sh\n' }
  const script = (await ada.request<{ init_script: { id: string } }>('POST', '/v1/init-scripts', body)).body.init_script
  let edits = 0
  const cursor = await until(
    'a cursor that the replica knows',
    async () => {
      const name = `known-${(edits += 1)}`
      await ada.request('PATCH', `/v1/init-scripts/${script.id}`, { name })
      await first.see(
        'the edit',
        (change) => change.event === 'change' && change.type === 'init_script' && change.item?.name === name,
      )
      const newest = first.got.at(-1)?.cursor
      const other = follow(bob.token, url, newest)
      await ada.request('PATCH', `/v1/init-scripts/${script.id}`, { name: `${name}-again` })
      const [begin] = await until(
        'an answer',
        () => other.got,
        (got) => got.length > 0,
      )
      await other.close()
      return begin?.event === 'reset' ? undefined : newest
    },
    (found) => found !== undefined,
  )
  await first.close()
  const [missed, deleted] = [await network(ada, 'missed'), await network(ada, 'deleted')]
  await ada.request('DELETE', `/v1/networks/${deleted}`)
  const next = follow(bob.token, url, cursor)
  await next.see('what was made', isItem(missed))
  await next.see(
    'what was deleted',
    (change) => isItem(deleted)(change) && change.event === 'change' && change.is === 'removed',
  )
  expect(next.got.filter(({ event }) => event === 'reset')).toEqual([])
  const later = await network(bob, 'later')
  await next.see('what comes then', isItem(later))
})
