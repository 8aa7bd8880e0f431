/** What watches are given: what is durable, each change once, and an end when they cannot keep up. */
import { expect, test } from 'vitest'
import type { KubeObject } from '../../../embedded/kubernetes/core/object.ts'
import { openStore } from '../../../embedded/kubernetes/core/store.ts'
import { openWatchHub, type Subscription } from '../../../embedded/kubernetes/core/watch-hub.ts'
import { memoryStorage } from '../../../embedded/kubernetes/storage/memory.ts'
import type { Storage } from '../../../embedded/kubernetes/storage/storage.ts'
import { ADMIN } from '../../../embedded/kubernetes/core/core.ts'
import { systemClock } from '../../../kit/sys/clock.ts'
import { openWidgetWorld, widget, WIDGETS } from './world.ts'

const KEY = 'example.dev/widgets'
const object = (name: string): KubeObject => ({
  apiVersion: 'example.dev/v1',
  kind: 'Widget',
  metadata: { name, namespace: 'default', uid: name, resourceVersion: '', creationTimestamp: '' },
})

/** A disk that can be held up: what is appended meanwhile becomes durable when it is released. */
function slowStorage(): Storage & { hold(): void; release(): void } {
  let disk = Promise.withResolvers<void>()
  disk.resolve()
  return {
    ...memoryStorage(),
    append: () => disk.promise,
    hold: () => void (disk = Promise.withResolvers<void>()),
    release: () => disk.resolve(),
  }
}

async function openHub() {
  const storage = slowStorage()
  const store = await openStore({ storage, clock: systemClock })
  const hub = openWatchHub(store)
  const subscribe = (after: number): Subscription => {
    const subscription = hub.subscribe(KEY, after)
    if (subscription === undefined) throw new Error('the window is too short')
    return subscription
  }
  const put = (name: string) => Number(store.put(KEY, `default/${name}`, object(name)).metadata.resourceVersion)
  return { storage, store, hub, subscribe, put }
}

/** The changes up to the note, by name. */
async function namesUntilNote(subscription: Subscription): Promise<string[]> {
  const names: string[] = []
  subscription.note('bookmark')
  for (let item = await subscription.next(); typeof item === 'object'; item = await subscription.next())
    names.push(item.last.metadata.name)
  return names
}

test('a watch that does not read is ended when ten thousand changes wait, and forgotten', async () => {
  const { store, hub, subscribe, put } = await openHub()
  const idle = subscribe(0)
  const reading = subscribe(0)
  for (let count = 0; count < 10_000; count++) put(`w-${count}`)
  await store.durable()
  expect(hub.count()).toBe(2)
  expect(await namesUntilNote(reading)).toHaveLength(10_000)
  put('one-more')
  await store.durable()
  expect(hub.count()).toBe(1)
  expect(await idle.next()).toBeUndefined()
  expect(await namesUntilNote(reading)).toEqual(['one-more'])
})

test('a new watch is given what is not durable yet once it is, and once only', async () => {
  const { storage, store, subscribe, put } = await openHub()
  put('durable')
  await store.durable()
  storage.hold()
  put('pending')
  const subscription = subscribe(0)
  expect(await namesUntilNote(subscription)).toEqual(['durable'])
  storage.release()
  await store.durable()
  expect(await namesUntilNote(subscription)).toEqual(['pending'])
})

test('a watch from a revision is not given it again when it becomes durable', async () => {
  const { storage, store, subscribe, put } = await openHub()
  storage.hold()
  const subscription = subscribe(put('known'))
  storage.release()
  await store.durable()
  put('next')
  await store.durable()
  expect(await namesUntilNote(subscription)).toEqual(['next'])
})

test('a watch that starts with the state is not answered before that state is durable', async () => {
  const storage = slowStorage()
  const world = await openWidgetWorld({ storage })
  storage.hold()
  const creating = world.post(WIDGETS, widget('pending'))
  await new Promise(setImmediate)
  let isAnswered = false
  const answering = world.core
    .handle({ method: 'GET', path: `${WIDGETS}?watch=true&timeoutSeconds=1`, headers: {} }, ADMIN)
    .finally(() => (isAnswered = true))
  await new Promise(setImmediate)
  expect(isAnswered).toBe(false)
  storage.release()
  const lines = (await (await answering).text()).trim().split('\n')
  expect(lines.map((line) => JSON.parse(line).object.metadata.name)).toEqual(['pending'])
  expect((await creating).status).toBe(201)
  await world.core.close()
})

test('a watched table shows the age of every row, long after the watch started', async () => {
  let passedMilliseconds = 0
  const clock = { ...systemClock, now: () => new Date(systemClock.now().getTime() + passedMilliseconds) }
  const world = await openWidgetWorld({ clock })
  const headers = { accept: 'application/json;as=Table;v=v1;g=meta.k8s.io' }
  const path = `${WIDGETS}?watch=true&timeoutSeconds=2`
  const watching = await world.core.handle({ method: 'GET', path, headers }, ADMIN)
  passedMilliseconds = 3_600_000
  await world.post(WIDGETS, widget('late'))
  const [line = ''] = (await watching.text()).split('\n')
  const { columnDefinitions, rows } = JSON.parse(line).object
  const age = columnDefinitions.findIndex(({ name }: { readonly name: string }) => name === 'Age')
  expect(rows[0].cells[age]).toMatch(/^\d{1,2}s$/)
  await world.core.close()
})
