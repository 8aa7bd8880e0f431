/** The list of themes. */

import type { Theme } from '../scenario.ts'
import { clientSideApply, serverSideApply } from './apply.ts'
import { access, coreKinds, namespaces } from './core.ts'
import { admission } from './admission.ts'
import { crud } from './crud.ts'
import { definitionLifecycle } from './definition.ts'
import { deletion, garbageCollection } from './deletion.ts'
import { discovery } from './discovery.ts'
import { everyday } from './everyday.ts'
import { listing } from './listing.ts'
import { patch } from './patch.ts'
import { expressions, subresources, validation } from './schema.ts'
import { watching } from './watching.ts'

export const themes: readonly Theme[] = [
  discovery,
  crud,
  patch,
  clientSideApply,
  serverSideApply,
  deletion,
  garbageCollection,
  watching,
  listing,
  validation,
  expressions,
  subresources,
  definitionLifecycle,
  namespaces,
  coreKinds,
  access,
  admission,
  everyday,
]

/** A scenario's namespace is made of its name, so two of the same name would meet in it. */
const names = themes.flatMap((theme) => theme.scenarios.map(({ name }) => name.slice(0, 50)))
const twice = names.find((name, index) => names.indexOf(name) !== index)
if (twice) throw new Error(`two scenarios are called "${twice}"`)
