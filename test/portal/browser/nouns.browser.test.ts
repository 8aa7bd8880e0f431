/** What every noun has, on servers and on the others: empty lists, live changes, hostile names, access. */
import { describe, expect, it } from 'vitest'
import { accessFaults, overflow } from './kit/access.ts'
import { usePortal, WIDTHS } from './kit/browser.ts'
import { NOUNS } from './kit/paths.ts'
import type { Person } from './kit/person.ts'

const portal = usePortal()

/** Somebody with a key, as servers need one. */
async function somebody(): Promise<Person> {
  const person = await portal.signUp()
  await person.customer.addSshKey()
  return person
}

const newServer = (hostname: string, title = '') => ({
  zone: 'eu-1a',
  hostname,
  title,
  plan: 'tiny',
  template: 'tiny-linux',
})

const HOSTILE = '<img src=x onerror="document.title=1"> x'

describe('nouns', () => {
  it.each(NOUNS)('%s: an empty list says what it is for', async (path, title) => {
    const page = await portal.page({ as: await portal.signUp() })
    await page.goto(path)
    await page.getByRole('heading', { level: 1, name: title }).waitFor()
    await page.getByRole('heading', { level: 2 }).first().waitFor()
    expect(await accessFaults(page)).toEqual([])
  })

  it.each(['light', 'dark'] as const)('pages of a server can be used by everybody in the theme %s', async (theme) => {
    const person = await somebody()
    const { server } = await person.customer.createServer(newServer('axe'))
    const page = await portal.page({ as: person, theme })
    for (const path of ['/dashboard', '/servers', '/servers/new', `/servers/${server.id}`, '/activity']) {
      await page.goto(path)
      await page.getByRole('heading', { level: 1 }).waitFor()
      await page.getByRole('main').locator('[aria-busy="true"]').first().waitFor({ state: 'detached' })
      expect(await accessFaults(page), path).toEqual([])
    }
  })

  it.each(WIDTHS)('fit in %s pixels', async (width) => {
    const person = await somebody()
    const { server } = await person.customer.createServer(newServer('a-long-name-for-a-server-in-a-narrow-window'))
    const page = await portal.page({ as: person, width })
    for (const path of ['/dashboard', '/servers', '/servers/new', `/servers/${server.id}`, '/settings/members']) {
      await page.goto(path)
      await page.getByRole('heading', { level: 1 }).waitFor()
      await page.getByRole('main').locator('[aria-busy="true"]').first().waitFor({ state: 'detached' })
      expect(await overflow(page), path).toEqual([])
    }
  })

  it('show what others change by the stream alone', async () => {
    const person = await somebody()
    const page = await portal.page({ as: person })
    // whatever the list reads is empty: a row can only come from the stream
    await page.route(/\/v1\/servers\?/, (route) => route.fulfill({ json: { items: [], next_cursor: null } }))
    await page.goto('/servers')
    await page.getByRole('button', { name: 'Changes arrive live' }).waitFor()
    await page.getByRole('link', { name: 'Create server' }).waitFor()
    await person.customer.createServer(newServer('elsewhere'))
    await page.getByRole('row', { name: /elsewhere.* started/ }).waitFor()
  })

  it('show hostile names as text', async () => {
    const person = await somebody()
    const { server } = await person.customer.createServer(newServer('hostile', HOSTILE))
    const page = await portal.page({ as: person })
    for (const path of ['/servers', `/servers/${server.id}`]) {
      await page.goto(path)
      await page.getByText('<img src=x onerror=').first().waitFor()
      expect(await page.locator('img').count()).toBe(0)
      expect(await page.title()).not.toBe('1')
    }
  })
})
