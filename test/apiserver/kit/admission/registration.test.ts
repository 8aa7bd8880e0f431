/** The registration of the webhook, on the embedded Kubernetes API: somebody deletes or edits it while all runs. */
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest'
import { openRegistrar, registerWebhook } from '../../../../apiserver/kit/admission/registration.ts'
import { KINDS } from '../../../../apiserver/nouns.ts'
import { unavailable, Unavailable } from '../../../../domain/problem.ts'
import { type Core, openCore } from '../../../../embedded/kubernetes/core/core.ts'
import { memoryStorage } from '../../../../embedded/kubernetes/storage/memory.ts'
import { openClient } from '../../../../kit/kube/client.ts'
import type { Store } from '../../../../kit/kube/store.ts'
import { systemClock } from '../../../../kit/sys/clock.ts'
import { silentLog as log } from '../../../../kit/sys/log.ts'
import { systemRandom as random } from '../../../../kit/sys/random.ts'

const NAME = 'cloud'
const PATH = '/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations'
const ADMIN = { name: 'admin', groups: ['system:masters'] }
const REGISTRATION = { url: 'https://127.0.0.1:8443/admission', authority: 'PEM', platformUsers: ['us'], kinds: KINDS }
const HOOKS = ['admission.svccloud.dev', 'namespaces.svccloud.dev']

let core: Core
let store: Store
let wake: () => void
let stop: AbortController
/** A minute passes when the test says so. */
const clock = {
  ...systemClock,
  sleep: (milliseconds: number) => {
    expect(milliseconds).toBe(60_000)
    return new Promise<void>((resolve) => (wake = resolve))
  },
}

beforeAll(async () => {
  core = await openCore({ clock: systemClock, random, log, storage: memoryStorage(), callWebhook: unreached })
  const transport = (call: Parameters<Core['handle']>[0]) => core.handle(call, ADMIN)
  store = openClient({ transport, fieldManager: 'apiserver', clock: systemClock, random })
})
afterAll(() => core.close())
beforeEach(async () => {
  await send('DELETE', `${PATH}/${NAME}`)
  stop = new AbortController()
})
afterEach(() => stop.abort())

const unreached = () => Promise.reject(new Error('nothing that a webhook judges is written here'))
async function send(method: 'DELETE' | 'GET' | 'PATCH' | 'POST', path: string, body?: object) {
  const type = method === 'PATCH' ? 'application/merge-patch+json' : 'application/json'
  const call = { method, path, headers: { 'content-type': type }, ...(body && { body: JSON.stringify(body) }) }
  return JSON.parse(await (await core.handle(call, ADMIN)).text()) as Configuration
}
interface Configuration {
  readonly webhooks?: readonly { readonly name: string; readonly failurePolicy: string }[]
}
const found = async () => (await send('GET', `${PATH}/${NAME}`)).webhooks
const names = async () => (await found())?.map(({ name }) => name)

const open = (
  registration: typeof REGISTRATION | 'of a chart' = REGISTRATION,
  through: Pick<Store, 'apply' | 'get'> = store,
) => {
  const own = registration === 'of a chart' ? undefined : registration
  return openRegistrar({ store: { ...store, ...through }, clock, log, name: NAME, registration: own }, stop.signal)
}

/** A minute passes, and the look at its end is over. */
async function lookOnce(): Promise<void> {
  const before = wake
  before()
  // The next minute begins when the look has ended.
  await expect.poll(() => wake === before).toBe(false)
}

test('it is there once the process goes on', async () => {
  const registrar = await open()
  expect([registrar.isRegistered(), await names()]).toEqual([true, HOOKS])
})

test('it is written again when somebody has deleted it', async () => {
  const registrar = await open()
  await send('DELETE', `${PATH}/${NAME}`)
  await lookOnce()
  expect([registrar.isRegistered(), await names()]).toEqual([true, HOOKS])
})

test('it is written again when somebody has changed it', async () => {
  await open()
  const hooks = await found()
  await send('PATCH', `${PATH}/${NAME}`, { webhooks: hooks?.map((hook) => ({ ...hook, failurePolicy: 'Ignore' })) })
  await lookOnce()
  expect(await found()).toEqual(hooks)
  await send('PATCH', `${PATH}/${NAME}`, { webhooks: hooks?.slice(1) })
  await lookOnce()
  expect(await found()).toEqual(hooks)
})

test('it counts as missing until it is written', async () => {
  let canWrite = true
  const registrar = await open(REGISTRATION, {
    get: store.get,
    apply: (...draft) => {
      if (!canWrite) throw new Unavailable('Kubernetes')
      return store.apply(...draft)
    },
  })
  await send('DELETE', `${PATH}/${NAME}`)
  canWrite = false
  await lookOnce()
  expect(registrar.isRegistered()).toBe(false)
  canWrite = true
  await lookOnce()
  expect([registrar.isRegistered(), await names()]).toEqual([true, HOOKS])
})

test('where a chart writes it, it is looked at and never written', async () => {
  const registrar = await open('of a chart')
  expect(registrar.isRegistered()).toBe(false)
  await registerWebhook(store, NAME, REGISTRATION) // as the chart does
  await lookOnce()
  expect(registrar.isRegistered()).toBe(true)
  await send('PATCH', `${PATH}/${NAME}`, { webhooks: (await found())?.slice(0, 1) })
  await lookOnce()
  expect([registrar.isRegistered(), await names()]).toEqual([false, HOOKS.slice(0, 1)])
  await send('DELETE', `${PATH}/${NAME}`)
  await lookOnce()
  expect([registrar.isRegistered(), await names()]).toEqual([false, undefined])
})

test('what is known stays while the Kubernetes API does not answer', async () => {
  let isAway = false
  const registrar = await open(REGISTRATION, {
    apply: store.apply,
    get: (...key) => {
      if (isAway) throw new Unavailable('Kubernetes')
      return store.get(...key)
    },
  })
  isAway = true
  await lookOnce()
  expect(registrar.isRegistered()).toBe(true)
})

test('a process that cannot register does not go on', async () => {
  const refuses = { get: store.get, apply: () => Promise.reject(unavailable('not_configured', 'no')) }
  await expect(open(REGISTRATION, refuses)).rejects.toThrow('no')
})
