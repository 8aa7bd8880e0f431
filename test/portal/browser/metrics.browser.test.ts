/** Charts of a server, counts of a load balancer. Simulated guests report no load: the test adds one to what the
 *  service answers. */
import { describe, expect, it } from 'vitest'
import { accessFaults, overflow } from './kit/access.ts'
import { open, usePortal } from './kit/browser.ts'
import { MANAGED_PATHS, showManaged } from './kit/managed.ts'
import { serverOf } from './kit/server.ts'

const portal = usePortal()

interface Point {
  readonly cpu_seconds: number | null
  readonly memory_used_bytes: number | null
}
interface Answer {
  readonly step_seconds: number
  readonly points: readonly Point[]
}

const MEBIBYTE = 1024 ** 2

describe('charts of a server', () => {
  it.each([
    ['light', 1360],
    ['dark', 320],
  ] as const)('show processor and memory once they are measured, in the theme %s', async (theme, width) => {
    const person = await portal.signUp()
    const id = await serverOf(person)
    const page = await portal.page({ as: person, theme, width })
    const path = `/servers/${id}?tab=metrics`
    await open(page, path)
    await page.getByText('Network', { exact: true }).first().waitFor()
    expect(await page.getByRole('img', { name: /^Processor/ }).count()).toBe(0)
    expect(await page.getByRole('img', { name: /^Memory/ }).count()).toBe(0)

    await page.route(`**/v1/servers/${id}/metrics*`, async (route) => {
      const response = await route.fetch()
      const answer = (await response.json()) as Answer
      const points = answer.points.map((point, at) => ({
        ...point,
        cpu_seconds: at < 20 ? null : (at % 4) * 10,
        memory_used_bytes: at < 20 ? null : 200 * MEBIBYTE,
      }))
      await route.fulfill({ response, json: { ...answer, points } })
    })
    await open(page, path)
    await page.getByRole('img', { name: 'Processor, peak 0.5' }).waitFor()
    await page.getByRole('img', { name: 'Memory, peak 200 MiB' }).waitFor()
    await page.getByText('As a table').first().click()
    await expect.poll(() => page.getByRole('cell', { name: '0.5', exact: true }).count()).toBeGreaterThan(0)
    expect(await page.getByRole('cell', { name: '–' }).count()).toBeGreaterThanOrEqual(20)
    expect([await accessFaults(page), await overflow(page)]).toEqual([[], []])
  })
})

describe('counts of a load balancer', () => {
  it('are read again on a click', async () => {
    const page = await portal.page({ as: await portal.signUp() })
    await showManaged(page, portal.url)
    const [balancer] = MANAGED_PATHS
    await open(page, balancer)
    await page.getByRole('tab', { name: 'Metrics' }).click()
    await page.getByRole('row', { name: /^web 3 41,000 1 KiB 5 GiB 90,000$/ }).waitFor()
    await page.getByRole('row', { name: /^shop \/ a 3 41,000 1 KiB 5 GiB$/ }).waitFor()
    await page.getByText('2 more members are not in the report.').waitFor()
    await page.route(/\/load-balancers\/[^/]+\/metrics$/, (route) =>
      route.fulfill({ json: { node_id: null, observed_at: null, frontends: [], members: [], omitted_members: 0 } }),
    )
    await page.getByRole('button', { name: 'Read again' }).click()
    await page.getByText('There are no measurements yet.').waitFor()
  })
})
