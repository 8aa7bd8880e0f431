/** Storages of the platform as volumes of a cluster, identified by the name that the cluster gave them. */
import { CLUSTER_LABELS } from '../../domain/kubernetes-cluster/rules.ts'
import { type Client, pages, type Schemas, SvccloudError, unwrap } from '../../client/index.ts'
import { derivedId, isUuid } from '../../domain/uuid.ts'
import { CLUSTER_LABEL, orNothing, untilEnded } from '../platform.ts'
import type { Page } from './messages.ts'
import { Refused } from './refusal.ts'

export type Storage = Schemas['Storage']
export type Snapshot = Schemas['Snapshot']

export interface ClusterStorages {
  readonly client: Client
  readonly clusterId: string
  /** Zone of volumes without a requested zone. */
  readonly zone: string
}

export const GIBIBYTE = 1024 ** 3
const TITLE_CHARACTERS_MAXIMUM = 255

/** Labels that identify volumes and snapshots of a cluster. */
export const storageLabels = ({ clusterId }: ClusterStorages, name: string): Record<string, string> => ({
  [CLUSTER_LABEL]: clusterId,
  [CLUSTER_LABELS.volume]: name,
})

/** Its name for people in their cluster, if the caller gives it; shortened to the platform's limit. */
export function titleOf(parameters: Readonly<Record<string, string>>, keys: readonly string[]): string | undefined {
  const parts = keys.map((key) => parameters[key])
  return parts.includes(undefined) ? undefined : parts.join('/').slice(0, TITLE_CHARACTERS_MAXIMUM)
}

/** Throws unless the cluster has created it, or somebody of the account has given it to the cluster with that label.
 *  Anybody who can write volumes in the cluster could otherwise name any storage of the account. */
export function requireOwn(storages: ClusterStorages, item: Storage | Snapshot): void {
  const { clusterId } = storages
  if (!isOwn(storages, item))
    throw new Refused(
      'FAILED_PRECONDITION',
      `${item.id} is not of this cluster: no label ${CLUSTER_LABEL}=${clusterId}`,
    )
}
export const isOwn = ({ clusterId }: ClusterStorages, { labels }: Storage | Snapshot): boolean =>
  labels[CLUSTER_LABEL] === clusterId

/** Storages that are being deleted are ignored. */
export async function findStorage(storages: ClusterStorages, name: string): Promise<Storage | undefined> {
  const label = Object.entries(storageLabels(storages, name)).map(([key, value]) => `${key}=${value}`)
  const { items } = await unwrap(storages.client.GET('/v1/storages', { params: { query: { label } } }))
  return items.find(({ state }) => state !== 'deleting')
}

/** Searches all snapshots of the account, because the list cannot filter by label. */
export async function findSnapshot(storages: ClusterStorages, name: string): Promise<Snapshot | undefined> {
  const wanted = Object.entries(storageLabels(storages, name))
  const read = (query: object) => storages.client.GET('/v1/snapshots', { params: { query: { ...query, limit: 100 } } })
  for await (const snapshot of pages(read))
    if (snapshot.state !== 'deleting' && wanted.every(([key, value]) => snapshot.labels[key] === value)) return snapshot
  return undefined
}

/** Undefined when it does not exist, or the id cannot be one of the platform's. */
export async function readStorage(client: Client, id: string): Promise<Storage | undefined> {
  if (!isUuid(id)) return undefined
  return (await orNothing(unwrap(client.GET('/v1/storages/{id}', { params: { path: { id } } }))))?.storage
}

/** See readStorage. */
export async function readSnapshot(client: Client, id: string): Promise<Snapshot | undefined> {
  if (!isUuid(id)) return undefined
  return (await orNothing(unwrap(client.GET('/v1/snapshots/{id}', { params: { path: { id } } }))))?.snapshot
}

const LOOKS_MAXIMUM = 10

/** Its state once no change of it is in progress. */
export async function idleStorage(client: Client, id: string): Promise<Storage | undefined> {
  for (let looks = 0; looks < LOOKS_MAXIMUM; looks++) {
    const storage = await readStorage(client, id)
    if (storage === undefined || storage.active_operation === null) return storage
    await untilEnded(client, storage.active_operation.id)
  }
  throw new Refused('ABORTED', `one change of the volume ${id} follows another`)
}

/** Throws when it does not exist, or does not belong to this cluster. */
export async function requireStorage(storages: ClusterStorages, id: string): Promise<Storage> {
  const storage = await idleStorage(storages.client, id)
  if (storage === undefined) throw new Refused('NOT_FOUND', `there is no volume ${id}`)
  requireOwn(storages, storage)
  return storage
}

const KEYS_MAXIMUM = 20

interface Once<Answer> {
  /** Describes the object to create; with a number appended it is the idempotency key of the request. */
  readonly text: string
  readonly post: (
    key: string,
  ) => Promise<{ readonly data?: Answer; readonly error?: unknown; readonly response: Response }>
  readonly isThere: (answer: Answer) => Promise<boolean>
}

/** Creates an object once, however often it is requested: the platform repeats its response for the same key. If the
 *  object of a key was deleted since, the next key is used. */
export async function makeOnce<Answer>({ text, post, isThere }: Once<Answer>): Promise<Answer> {
  for (let number = 0; number < KEYS_MAXIMUM; number++) {
    const answer = await post(derivedId(`${text}/${number}`))
    const isReplayed = answer.response.headers.get('idempotent-replayed') === 'true'
    try {
      const item = await unwrap(Promise.resolve(answer))
      if (!isReplayed || (await isThere(item))) return item
    } catch (error) {
      // the key belongs to another object of that name that was deleted: the caller has checked that it does not exist
      if (!(error instanceof SvccloudError) || error.problem.reason !== 'idempotency_key_reused') throw error
    }
  }
  throw new Refused('ABORTED', 'it was made and deleted too often today')
}

const PAGE_ITEMS = 100

/** A page with at most this many items, or all following items, without those that are being deleted. Throws ABORTED
 *  for an unknown token. */
export async function itemsPage<Item extends { readonly state: string }>(
  { maxEntries, startingToken }: Page,
  read: (query: {
    readonly cursor?: string
    readonly limit: number
  }) => Promise<{ readonly items: readonly Item[]; readonly next_cursor: string | null }>,
): Promise<{ readonly items: readonly Item[]; readonly nextToken: string }> {
  if (maxEntries < 0) throw new Refused('INVALID_ARGUMENT', 'max_entries is negative')
  const items: Item[] = []
  let cursor = startingToken
  do {
    const limit = maxEntries === 0 ? PAGE_ITEMS : Math.min(PAGE_ITEMS, maxEntries - items.length)
    const page = await read(cursor === '' ? { limit } : { cursor, limit }).catch((error: unknown) => {
      if (cursor !== '' && error instanceof SvccloudError && error.status === 400)
        throw new Refused('ABORTED', 'starting_token was not given here')
      throw error
    })
    items.push(...page.items.filter(({ state }) => state !== 'deleting'))
    cursor = page.next_cursor ?? ''
  } while (cursor !== '' && (maxEntries === 0 || items.length < maxEntries))
  return { items, nextToken: cursor }
}
