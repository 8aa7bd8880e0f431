/** The control plane under faults, seed by seed. A failing seed is replayed with `npm run sim -- --first SEED --seeds 1
 *  --trace`, with `--losses` where hosts are lost. */
import { availableParallelism } from 'node:os'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { KINDS } from '../../apiserver/nouns.ts'
import { useDatabase } from '../database.ts'
import { CHOSEN_SEEDS } from './chosen.ts'
import { openPool, type Pool, type SeedResult } from './pool.ts'

const THREADS = Math.max(2, availableParallelism())
/** Each of so many seeds runs again with other plans of the database. */
const REPEAT_EVERY = 8
/** Any change of the product changes what a seed reaches. Where less is left, seeds have to be chosen anew. */
const STILL_REACHED_MINIMUM = 0.9

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
  edges: 'worlds of their own have machines: `machines.test.ts`',
  loadbalancers: 'worlds of their own have machines: `machines.test.ts`',
  managedmachines: 'the platform and its hosts write them; people only see what they have moved',
  databases:
    'simulated guests run no PostgreSQL, and say of themselves only what edges and load balancers do: its life is ' +
    'tested by its controller',
  kubernetesclusters:
    'the host of control planes is a process of one machine, which the simulation does not have: the life of a ' +
    'cluster is tested by its controller with one that only counts, and with real programs',
  nodepools: 'there are none without clusters: their life is tested by their controller, and with a real control plane',
  objectstorages:
    'what keeps objects is a process of one machine, which the simulation does not have: the life of one is tested ' +
    'by its controller, and with the real engine and other people’s clients',
  backups: 'worlds of their own have a place for them: `backups.test.ts`',
}

describe('the control plane under faults', () => {
  const databases = Array.from({ length: THREADS }, () => useDatabase())
  let pool: Pool | undefined
  let results: readonly Promise<SeedResult>[] = []

  beforeAll(() => {
    const opened = (pool = openPool(databases.map(({ url }) => url)))
    results = CHOSEN_SEEDS.map(({ seed, hasLosses }, index) =>
      opened.run({ seed, hasLosses, isRepeated: index % REPEAT_EVERY === 0 }),
    )
    for (const result of results) result.catch(() => {}) // thrown by its test
  })
  afterAll(() => pool?.close())

  it.each(
    CHOSEN_SEEDS.map(({ seed, hasLosses }, index) => [`${seed}${hasLosses ? ' with losses' : ''}`, index] as const),
  )('keeps every invariant for seed %s', async (_name, index) => {
    const result = await results[index]
    expect(result?.violations, `faults: ${result?.faults}`).toEqual([])
  })

  it('changes every kind that customers and operators may change', async () => {
    const reached = (await Promise.all(results)).flatMap((result) => result.reached)
    const changed = CHANGEABLE.filter((plural) => reached.some((what) => PEOPLE_WRITE.exec(what)?.[1] === plural))
    expect(CHANGEABLE.length).toBeGreaterThan(0)
    expect(changed.toSorted()).toEqual(CHANGEABLE.filter((plural) => !(plural in UNCHANGED)).toSorted())
    expect(CHANGEABLE).toEqual(expect.arrayContaining(Object.keys(UNCHANGED)))
  })

  it('still reaches what the seeds were chosen for', async () => {
    const reached = new Set((await Promise.all(results)).flatMap((result) => result.reached))
    const wanted = CHOSEN_SEEDS.flatMap(({ adds }) => adds)
    const missing = wanted.filter((what) => !reached.has(what))
    expect(wanted.length).toBeGreaterThan(0)
    expect(missing.filter((what) => what.startsWith('fault ') && !what.includes(' during '))).toEqual([])
    expect(missing.filter((what) => what.endsWith(' succeeded'))).toEqual([])
    expect(
      1 - missing.length / wanted.length,
      `choose seeds anew (docs/testing.md); no longer reached: ${missing.join('; ')}`,
    ).toBeGreaterThan(STILL_REACHED_MINIMUM)
  })
})
