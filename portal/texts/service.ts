/** Words of the service that are names of things and not of states: kinds of operations and their steps, types of
 *  resources, quotas. In English they are as the service writes them. */
import { t } from './index.ts'

const wordIn = (table: Readonly<Record<string, string>>, word: string): string =>
  // names are no members of the table: `constructor` is one of every object
  Object.hasOwn(table, word) ? (table[word] ?? word) : word.replaceAll('_', ' ')

/** `kubernetes_cluster` in words. */
export const typeText = (type: string): string => wordIn(t().service.types, type)

export const stepText = (step: string): string => wordIn(t().service.steps, step)
export const quotaText = (name: string): string => wordIn(t().service.quotas, name)

/** `server.create` in words. */
export function kindText(kind: string): string {
  const [type = '', verb = ''] = kind.split('.')
  return verb === '' ? typeText(type) : `${typeText(type)}: ${wordIn(t().service.verbs, verb)}`
}
