/** The control plane under faults: the chosen seeds that reach most. `chosen.seeds.test.ts` has the others. */
import { describe, expect, it } from 'vitest'
import { KINDS } from '../../apiserver/nouns.ts'
import { FIRST_CHOSEN_SEEDS } from './chosen.ts'
import { testChosenSeeds } from './chosen-worlds.ts'

/** Every kind that has a rule for people, and those that operators write by their rights alone. */
const CHANGEABLE = KINDS.filter(({ access, verbs }) => access !== 'none' && verbs?.length !== 0).map(
  ({ resource }) => resource.plural,
)
/** By the API or past it. */
const PEOPLE_WRITE =
  /^(?:apiserver|kubectl) (?:POST|PUT|PATCH|DELETE) \/apis\/svccloud\.dev\/\w+\/(?:namespaces\/[^/]+\/)?(\w+)/
/** Why nobody changes these while a seed runs. */
const UNCHANGED: Readonly<Record<string, string>> = {
  regions: 'a region is a name that zones have in common',
  zones: 'a zone that closes refuses new servers, and changes nothing of those it has',
  prices: 'what things cost changes no object: billing is tested by its controllers',
  edges: 'worlds of their own: `balancers.seeds.test.ts`',
  loadbalancers: 'worlds of their own: `balancers.seeds.test.ts`',
  nodereports: 'hosts alone write what they hold; what follows from it: `older-stores.seeds.test.ts`',
  instances: "what hosts hold is the platform's alone: `accidents-by-hand.seeds.test.ts` has who tries",
  volumes: "what hosts hold is the platform's alone: `accidents-by-hand.seeds.test.ts` has who tries",
  managedmachines: 'the platform and its hosts write them; people only see what they have moved',
  databases: 'worlds of their own have them: `databases.seeds.test.ts`',
  kubernetesclusters: 'worlds of their own have them: `clusters.seeds.test.ts`',
  kuberneteshosts: 'hosts of the settings run the control planes of a world: these are tested by their controller',
  playgrounds:
    'they need a host of control planes, as clusters do: their life is tested by their controller, and with real ' +
    'programs',
  nodepools: 'worlds of their own have them: `clusters.seeds.test.ts`',
  devclusters:
    'a guest of theirs is a whole cluster, which no simulated host runs: their life is tested by their controller, ' +
    'and what follows from what guests say by tables',
  objectstorages: 'worlds of their own have them: `objects.seeds.test.ts`',
  webhooks:
    'no host has a part of them, and no receiver is in a world: `webhook/life.database-long.test.ts` kills who finds ' +
    'and sends',
  backups: 'worlds of their own have a place for them: `backups.seeds.test.ts`',
}

describe('the control plane under faults', () => {
  const allReached = testChosenSeeds(FIRST_CHOSEN_SEEDS)

  it('changes every kind that customers and operators may change', async () => {
    const reached = await allReached()
    const changed = CHANGEABLE.filter((plural) => reached.some((what) => PEOPLE_WRITE.exec(what)?.[1] === plural))
    expect(CHANGEABLE.length).toBeGreaterThan(0)
    expect(changed.toSorted()).toEqual(CHANGEABLE.filter((plural) => !(plural in UNCHANGED)).toSorted())
    expect(CHANGEABLE).toEqual(expect.arrayContaining(Object.keys(UNCHANGED)))
  })
})
