/** Plans that servers can have: those of databases are for their machines only. */
import { serverPlans as serverPlansIn } from '../../changes/kit/machine.ts'
import { worldOf } from '../../changes/kit/world.ts'
import { isDatabasePlan } from '../../domain/database.ts'
import { Plan } from '../../resources/catalog/index.ts'
import type { Parts } from '../parts.ts'

type Catalog = Pick<Parts, 'caches'>

export const serverPlans = ({ caches }: Catalog) => serverPlansIn(worldOf(caches))

/** Undefined when there is none for servers. */
export const findServerPlan = ({ caches }: Catalog, name: string) =>
  isDatabasePlan(name) ? undefined : caches.of(Plan).get({ name })
