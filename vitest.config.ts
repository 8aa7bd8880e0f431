/** One vitest project per tier of tools/tiers.ts. `npx vitest run test/some/file.test.ts` runs one file whatever its
 *  tier. */
import { defineConfig } from 'vitest/config'
import { LongestFirst } from './tools/longest-first.ts'
import { patienceMilliseconds, PATIENCE_VARIABLE, TIERS } from './tools/tiers.ts'

export default defineConfig({
  test: {
    pool: 'forks',
    // A left-over `.only` would make the rest of the suite silently green.
    allowOnly: false,
    // Node runs the files as it runs the product: nothing is transformed and nothing is mocked, and loops run twice as
    // fast.
    experimental: { viteModuleRunner: false, nodeLoader: false },
    sequence: { sequencer: LongestFirst },
    // What the files of a tier share may be a whole product, which stops within a minute.
    teardownTimeout: 90_000,
    projects: TIERS.map((tier) => ({
      test: {
        name: tier.name,
        include: [...tier.include],
        exclude: [...tier.exclude, '**/node_modules/**'],
        isolate: tier.isIsolated,
        globalSetup: tier.setup === undefined ? [] : [tier.setup],
        testTimeout: tier.testTimeoutMilliseconds,
        hookTimeout: tier.testTimeoutMilliseconds,
        // Less than a test's time, so that a condition that never comes true is reported with what was seen last.
        expect: { poll: { timeout: patienceMilliseconds(tier) } },
        env: { [PATIENCE_VARIABLE]: String(patienceMilliseconds(tier)) },
      },
    })),
  },
})
