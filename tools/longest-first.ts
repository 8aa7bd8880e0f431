/** The order of test files: the longest ones start first, so that no worker ends a tier alone with one of them. What
 *  vitest knows of durations comes from the machine's last run, which a fresh clone does not have. */
import { join, relative } from 'node:path'
import { BaseSequencer, type TestSpecification } from 'vitest/node'

const ROOT = join(import.meta.dirname, '..')

/** Each takes more than a fifth of its tier's time, longest first, or mostly waits, so that others can use the time. */
export const LONGEST: readonly string[] = [
  'test/e2e/migration.endurance.test.ts',
  'test/e2e/highly-available-cluster.endurance.test.ts',
  'test/agents/node/move.endurance.test.ts',
  'test/e2e/public-network.network-long.test.ts',
  'test/agents/node/move.qemu-long.test.ts',
  'test/agents/node/images/database-archive.postgresql-long.test.ts',
  'test/controllers/network/ovn/private.network.test.ts',
  'test/controllers/network/ovn/firewall-model.network-long.test.ts',
  'test/agents/node/network/user-mode.network-long.test.ts',
  'test/controllers/network/public-network/guest.network.test.ts',
  'test/hosting/processes/host.kubernetes.test.ts',
  'test/controllers/nouns/kubernetes-cluster/life.kubernetes-long.test.ts',
  'test/agents/node/hypervisor.qemu.test.ts',
  'test/agents/node/agent.qemu.test.ts',
  'test/agents/node/images/import/import.qemu-long.test.ts',
]

type File = Pick<TestSpecification, 'moduleId'>

const rankOf = ({ moduleId }: File): number => {
  const place = LONGEST.indexOf(relative(ROOT, moduleId))
  return place === -1 ? LONGEST.length : place
}

/** The others keep their order. */
export const longestFirst = <T extends File>(files: readonly T[]): T[] =>
  files.toSorted((a, b) => rankOf(a) - rankOf(b))

export class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    return longestFirst(await super.sort(files))
  }
}
