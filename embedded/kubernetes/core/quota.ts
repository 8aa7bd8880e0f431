/** Resource quotas, only for counts of objects: `count/<resource>.<group>`, and the plain names of the core group.
 *  Quotas of processors, memory and storage apply only to clusters that run pods. */
import type { Definition } from './definition.ts'
import type { Engine } from './engine.ts'
import { asObject, at } from './json.ts'
import type { ReadTarget } from './read.ts'
import { forbidden } from './status.ts'

const QUOTAS = '/resourcequotas'

/** Names under which quotas may count the resource. */
const namesOf = ({ group, resource }: Pick<Definition, 'group' | 'resource'>): readonly string[] =>
  group === '' ? [`count/${resource}`, resource] : [`count/${resource}.${group}`]

/** Throws 403 when another object would exceed a quota of its namespace. */
export function checkQuota(engine: Engine, { definition, namespace, name }: ReadTarget): void {
  if (!definition.isNamespaced) return
  for (const [, quota] of engine.store.table(QUOTAS).scan(`${namespace}/`)) {
    const hard = asObject(at(quota, 'spec', 'hard'))
    for (const counted of namesOf(definition)) {
      const limit = Number(hard[counted])
      if (hard[counted] === undefined || Number.isNaN(limit)) continue
      const used = engine.store.table(definition.storageKey).count(`${namespace}/`)
      if (used >= limit)
        throw forbidden(
          definition,
          name,
          `exceeded quota: ${quota.metadata.name}, requested: ${counted}=1, used: ${counted}=${used}, ` +
            `limited: ${counted}=${limit}`,
        )
    }
  }
}
