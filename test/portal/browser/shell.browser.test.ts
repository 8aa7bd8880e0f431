/** The pages themselves: how they are served, and that nothing of them comes from elsewhere. */
import { describe, expect, inject, it } from 'vitest'
import { accessFaults, overflow } from './kit/access.ts'
import { usePortal, WIDTHS } from './kit/browser.ts'

const portal = usePortal()

it('is where npm start says', () => {
  const address = /^ +portal +(\S+)$/m.exec(inject('portalOutput') ?? '')?.[1]
  expect(address).toBe(portal.url)
})

describe('the portal', () => {
  it('asks at its root who somebody is, under its policy', async () => {
    const page = await portal.page()
    const answer = await page.goto('/')
    expect(answer?.request().redirectedFrom()?.url()).toBe(`${portal.url}/`)
    expect(answer?.url()).toBe(`${portal.url}/dashboard`)
    await page.getByRole('button', { name: 'Sign in' }).waitFor()
    expect(page.url()).toBe(`${portal.url}/login?return_to=%2Fdashboard`)
    const { object_storage_url: store } = portal.endpoints
    const stores = store === null || store === undefined ? [] : [store]
    expect(answer?.headers()['content-security-policy']).toBe(
      "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; " +
        `connect-src ${["'self'", ...stores].join(' ')}; ` +
        "worker-src 'self'; manifest-src 'self'; base-uri 'none'; form-action 'none'; " +
        "frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'",
    )
  })

  it.each([
    [
      'a style in the page',
      "document.body.append(Object.assign(document.createElement('style'), { textContent: 'p{}' }))",
      [/inline style violates/, /policy: style-src-elem refused inline/],
    ],
    [
      'markup from a text',
      "Promise.resolve().then(() => void (document.body.innerHTML = '<b>x</b>')).catch(() => {})",
      [/requires 'TrustedHTML'/, /policy: require-trusted-types-for refused/],
    ],
    [
      'a script from a text',
      "document.body.append(Object.assign(document.createElement('script'), { async: true }))\n" +
        "try { document.querySelector('body > script').text = 'x()' } catch {}",
      [/requires 'TrustedScript'/, /policy: require-trusted-types-for refused/],
    ],
    [
      'another origin',
      "fetch('https://elsewhere.example/').catch(() => {})",
      [
        /Connecting to .https:\/\/elsewhere/,
        /Fetch API cannot load/,
        /policy: connect-src refused https:\/\/elsewhere/,
      ],
    ],
  ])('refuses %s, and its tests notice', async (_name, script, allows) => {
    const page = await portal.page({ allows })
    await page.goto('/')
    const reported = page.waitForEvent('console', (message) => message.text().startsWith('policy: '))
    await page.evaluate(script)
    await reported
  })

  it('has one address on this machine', async () => {
    const page = await portal.page({ allows: [/another origin: http:\/\/localhost/] })
    const { port } = new URL(portal.url)
    await page.goto(`http://localhost:${port}/login?error=provider_error`)
    expect(new URL(page.url()).origin).toBe(portal.url)
  })

  it('is loaded again when a server of another release has none of its files', async () => {
    const page = await portal.page({ allows: [/status of 404 .*\/assets\/.*\.js$/] })
    let refusals = 0
    await page.route(/\/assets\/index-.*\.js$/, (route) =>
      refusals++ === 0 ? route.fulfill({ status: 404 }) : route.continue(),
    )
    await page.goto('/')
    await page.getByRole('heading', { level: 1 }).waitFor()
    expect(refusals).toBe(2)
  })

  it('shows its first page to somebody who is signed in', async () => {
    const page = await portal.page({ as: await portal.signUp() })
    await page.goto('/')
    await page.getByRole('heading', { level: 1 }).waitFor()
    expect(page.url()).toBe(`${portal.url}/dashboard`)
  })

  it('has the theme and the language that somebody has chosen in another browser', async () => {
    const person = await portal.signUp()
    const first = await portal.page({ as: person })
    await first.goto('/dashboard')
    for (const choice of ['Dark', 'Deutsch']) {
      const kept = first.waitForResponse(
        (answer) => answer.url().endsWith('/v1/account/preferences') && answer.request().method() === 'PUT',
      )
      await first.getByRole('button', { name: new RegExp(person.email) }).click()
      await first.getByRole('menuitem', { name: new RegExp(`^${choice}`) }).click()
      expect((await kept).status()).toBe(200)
    }
    await first.getByRole('heading', { level: 1, name: 'Übersicht' }).waitFor()
    const second = await portal.page()
    await second.goto('/login')
    await second.getByLabel('Email').fill(person.email)
    await second.getByLabel('Password', { exact: true }).fill(person.password)
    await second.getByRole('button', { name: 'Sign in', exact: true }).click()
    await second.getByRole('heading', { level: 1, name: 'Übersicht' }).waitFor()
    expect(await second.locator('html').getAttribute('data-theme')).toBe('dark')
  })

  it.each(['light', 'dark'] as const)('can be used by everybody in the theme %s', async (theme) => {
    const page = await portal.page({ theme, as: await portal.signUp() })
    for (const path of ['/dashboard', '/servers', '/servers/new']) {
      await page.goto(path)
      await page.getByRole('heading', { level: 1 }).waitFor()
      expect(await accessFaults(page), path).toEqual([])
    }
  })

  it.each(WIDTHS)('fits in %s pixels', async (width) => {
    const page = await portal.page({ width })
    await page.goto('/')
    await page.getByRole('heading', { level: 1 }).waitFor()
    expect(await overflow(page)).toEqual([])
  })
})
