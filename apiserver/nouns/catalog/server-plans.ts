/** Plans that servers can have: those of databases are for their machines only. */
import { isDatabasePlan } from '../../../domain/database/rules.ts'
import { Plan } from '../../../resources/catalog/index.ts'
import type { Parts } from '../../kit/parts.ts'

/** Undefined when there is no such plan for servers. */
export const findServerPlan = ({ caches }: Pick<Parts, 'caches'>, name: string) =>
  isDatabasePlan(name) ? undefined : caches.of(Plan).get({ name })
