/** What REST and kubectl are refused, as lines of a table: status, reason, field and sentence. */
import { admit } from '../../apiserver/kit/admission/admit.ts'
import { KINDS } from '../../apiserver/nouns.ts'
import { Problem } from '../../domain/problem.ts'
import type { KubeObject, ResourceType } from '../../kit/kube/object.ts'
import { systemClock } from '../../kit/sys/clock.ts'
import { systemRandom } from '../../kit/sys/random.ts'
import { Zone } from '../../resources/catalog/index.ts'
import type { Cloud, Person, Reply } from './cloud.ts'

/** What is asked for, in words, and how. Ids in paths and bodies are the names of the test. */
export type Asked = readonly [what: string, method: string, path: string, body?: object]

export const refusalOf = ({ status, body }: Reply): string => {
  const fields = ((body['errors'] ?? []) as readonly { readonly field: string }[]).map(({ field }) => `(${field})`)
  const detail: unknown = body['detail']
  return [status, body['reason'], ...fields, detail].filter((part) => part !== undefined).join(' ')
}

/** `ids` are those of the names. */
export const naming = (ids: Readonly<Record<string, string>>) => ({
  path: (path: string): string => path.replaceAll(/:(\w+)/g, (_match, name: string) => ids[name] ?? name),
  body: (body: object): object =>
    JSON.parse(JSON.stringify(body), (key, value) =>
      typeof value === 'string' && key !== 'name' ? (ids[value] ?? value) : value,
    ),
  /** The names instead of the ids. */
  plain: (text: string): string =>
    Object.entries(ids).reduce((known, [name, id]) => (id === '' ? known : known.replaceAll(id, `:${name}`)), text),
})

/** Asks for all of it in order. Answers what is said of each. */
export async function refusals(
  person: Person,
  ids: Readonly<Record<string, string>>,
  asked: readonly Asked[],
): Promise<readonly string[]> {
  const { path, body, plain } = naming(ids)
  const lines: string[] = []
  for (const [what, method, at, sent] of asked) {
    const reply = await person.send(method, path(at), sent === undefined ? {} : { body: body(sent) })
    lines.push(plain(`${what}: ${refusalOf(reply)}`))
  }
  return lines
}

/** An edit by kubectl: the object after it, and the one before; undefined where there is none. */
export type Edit = readonly [what: string, after: KubeObject | undefined, before?: KubeObject]

/** What admission says of the edits: whatever it records of those that it admits. */
export async function admissions(
  cloud: Pick<Cloud, 'db' | 'caches'>,
  type: ResourceType,
  edits: readonly Edit[],
): Promise<readonly string[]> {
  const parts = { db: cloud.db, caches: cloud.caches, clock: systemClock, random: systemRandom, kinds: KINDS }
  const lines: string[] = []
  for (const [what, after, before] of edits) {
    const operation = before === undefined ? 'CREATE' : after === undefined ? 'DELETE' : 'UPDATE'
    // What `admit` reads.
    const request = {
      operation,
      resource: { group: type.group, resource: type.plural },
      subResource: '',
      namespace: (after ?? before)?.metadata.namespace ?? '',
      userInfo: { username: 'ada' },
      object: after,
      oldObject: before,
    } as unknown as Parameters<typeof admit>[1]
    try {
      const admitted = await admit(parts, request)
      lines.push(`${what}: is admitted as ${admitted.map(({ action }) => action).join(', ')}`)
    } catch (error) {
      if (!(error instanceof Problem)) throw error
      const { status, message: detail, members } = error
      lines.push(`${what}: ${refusalOf({ status, body: { ...members, detail }, headers: {}, text: '' })}`)
    }
  }
  return lines
}

/** Zones that take nothing: without networks, closed, and with networks but without images for machines. */
export async function lackingZones({ admin, caches }: Pick<Cloud, 'admin' | 'caches'>): Promise<void> {
  for (const name of ['bare', 'closed', 'imageless'])
    await admin.create(Zone, {
      metadata: { name },
      spec: { displayName: name, region: 'eu-1', isClosed: name === 'closed', capabilities: [] },
    })
  const status = { hasPrivateNetworks: true }
  caches.of(Zone).apply(await admin.patch(Zone, { name: 'imageless' }, { status }, 'status'))
}

/** Why an object with an operation under way refuses another one. */
export const BUSY = 'Another operation runs on this resource. Wait until it has ended, then try again.'
