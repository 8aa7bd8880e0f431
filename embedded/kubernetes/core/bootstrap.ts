/** The objects of every server. Runs at every start and creates only missing ones. */
import { parseGroupVersion } from './definition.ts'
import type { Engine } from './engine.ts'
import { shape } from './shape.ts'
import { at, type JsonObject } from './json.ts'
import { DEFAULT_ROLES } from '../access/default-roles.ts'

const NAMESPACES = ['default', 'kube-node-lease', 'kube-public', 'kube-system']

export function bootstrap(engine: Engine): void {
  for (const name of NAMESPACES) ensure(engine, { apiVersion: 'v1', kind: 'Namespace', metadata: { name } }, name)
  for (const object of DEFAULT_ROLES) ensure(engine, object, String(at(object, 'metadata', 'name')))
}

function ensure(engine: Engine, draft: JsonObject, name: string): void {
  const { clock, random, registry, store } = engine
  const { group, version } = parseGroupVersion(String(draft.apiVersion))
  const definition = registry.findKind(group, version, String(draft.kind))
  if (!definition || store.table(definition.storageKey).get(name)) return
  store.put(
    definition.storageKey,
    name,
    shape({ definition, draft, old: undefined, namespace: '', name, subresource: '', now: clock.now(), random }).object,
  )
}
