/** The replacement of the root disk of a database's machine, as far as the controller of servers does not do it: its
 *  start, and what it leaves behind when its host is lost. */
import { DATABASE_ROLE } from '../../../domain/database/rules.ts'
import { defined } from '../../../domain/defined.ts'
import { IMAGE_VERSION_ARGUMENT } from '../../../domain/managed-machine/rules.ts'
import { type Key, keyOf } from '../../../kit/kube/object.ts'
import { Server } from '../../../resources/server/index.ts'
import { Storage } from '../../../resources/storage/index.ts'
import { machineName } from '../managed-machine/index.ts'
import { SYSTEM_ACTOR } from '../../kit/operation/direct-edit.ts'
import { activeOperation, derivedStanza } from '../../kit/operation/stanza.ts'
import type { Parts } from '../../kit/parts.ts'

/** Starts the replacement, unless the server has another operation under way or was changed meanwhile: then it is due
 *  again later. Throws Conflict for the latter. */
export async function beginExchange(
  { store, clock }: Pick<Parts, 'store' | 'clock'>,
  key: Key,
  imageVersion: string,
): Promise<void> {
  const server = await store.get(Server, key)
  if (server === undefined || activeOperation(server) !== undefined) return
  const { uid = '', generation = 0, resourceVersion = '' } = server.metadata
  const seed = `${uid}/${generation}/${imageVersion}`
  const stanza = derivedStanza('server.rebuild', { seed, actor: SYSTEM_ACTOR, now: clock.now() })
  const args = {
    [IMAGE_VERSION_ARGUMENT]: imageVersion,
    previous_boot_storage: server.spec.bootStorageId ?? key.name,
    ...defined({ previous_template: server.spec.template }),
  }
  // A merge patch keeps the arguments of the previous stanza: those that this one lacks are set to null.
  const before = Object.fromEntries(Object.keys(server.spec.operation?.arguments ?? {}).map((name) => [name, null]))
  const operation = { ...stanza, arguments: { ...before, ...args } }
  await store.patch(Server, key, { metadata: { resourceVersion }, spec: { operation } })
}

/** Boot storages that its machine does not boot from. The server is read from the store: a replacement that this cache
 *  does not have yet may have created one of them. */
export async function spareDisksOf(
  { caches, store }: Pick<Parts, 'caches' | 'store'>,
  { namespace, uid }: { readonly namespace: string; readonly uid: string },
): Promise<readonly Key[]> {
  const key = { namespace, name: machineName({ uid }, DATABASE_ROLE) }
  const boots = caches
    .of(Storage)
    .inNamespace(namespace)
    .filter(
      ({ spec, metadata }) => spec.isBoot && spec.serverId === key.name && metadata.deletionTimestamp === undefined,
    )
  if (boots.length < 2) return []
  const server = await store.get(Server, key)
  if (server === undefined || activeOperation(server) !== undefined) return []
  const used = server.spec.bootStorageId ?? key.name
  return boots.map(keyOf).filter(({ name }) => name !== used)
}
