/** What a browser takes over from the person who signs in. */
import { answer, useOutside } from './outside.ts'
import { beforeAll, beforeEach, expect, it, vi } from 'vitest'
import { openPortal } from '../../portal/api/portal.ts'
import { customerPortal } from '../../portal/customer.ts'
import { adopt, chooseLanguage } from '../../portal/shell/preferences.ts'
import { loadTexts } from '../../portal/texts/index.ts'

const outside = useOutside()
const kept = new Map<string, string>()
const dataset: Record<string, string> = {}
const reload = vi.fn()

beforeAll(async () => {
  openPortal(customerPortal)
  await loadTexts()
  Object.assign(outside.location, { reload })
  vi.stubGlobal('document', { cookie: '', documentElement: { lang: '', dataset }, dispatchEvent: () => true })
})
beforeEach(() => {
  kept.clear()
  delete dataset['theme']
  reload.mockClear()
  keepsWith((name, value) => kept.set(name, value))
})

const keepsWith = (setItem: (name: string, value: string) => unknown): unknown =>
  vi.stubGlobal('localStorage', { getItem: (name: string) => kept.get(name) ?? null, setItem })

let people = 0
const somebody = (impersonation: object | null = null) =>
  ({ user: { id: `person ${(people += 1)}` }, impersonation }) as unknown as Parameters<typeof adopt>[0]
const chose = (preferences: object): void => {
  outside.serve = () => answer(200, { preferences, updated_at: '2026-01-01T00:00:00Z' })
}

it('is what they have chosen in the portal of another browser, once', async () => {
  chose({ theme: 'dark', locale: 'en', portal_locale: 'de' })
  const person = somebody()
  await adopt(person)
  expect([dataset['theme'], kept.get('svccloud.locale')]).toEqual(['dark', 'de'])
  expect(reload).toHaveBeenCalledTimes(1)
  await adopt(person)
  expect(outside.requests).toHaveLength(1)
})

it('is not the language of the browser that signed up, or one that the portal lacks', async () => {
  for (const preferences of [{ locale: 'de' }, { portal_locale: 'pseudo' }]) {
    chose(preferences)
    await adopt(somebody())
    expect(kept.get('svccloud.locale')).toBeUndefined()
  }
  expect(outside.requests).toHaveLength(2)
  expect(reload).not.toHaveBeenCalled()
})

it('is nothing that was chosen in this browser before', async () => {
  kept.set('svccloud.locale', 'en')
  dataset['theme'] = 'light'
  chose({ theme: 'dark', portal_locale: 'de' })
  await adopt(somebody())
  expect([dataset['theme'], kept.get('svccloud.locale')]).toEqual(['light', 'en'])
  expect(reload).not.toHaveBeenCalled()
})

it('is nothing in a support session', async () => {
  chose({ theme: 'dark', portal_locale: 'de' })
  await adopt(somebody({}))
  expect(outside.requests).toEqual([])
})

it('does not load the page again for a browser without storage', async () => {
  keepsWith(() => undefined)
  chose({ portal_locale: 'de' })
  const person = somebody()
  await adopt(person)
  await adopt(person)
  expect(outside.requests).toHaveLength(1)
  expect(reload).not.toHaveBeenCalled()
})

it('keeps no page back for longer than two seconds', async () => {
  vi.useFakeTimers()
  const late = Promise.withResolvers<Response>()
  outside.serve = () => late.promise
  const adopted = adopt(somebody())
  await vi.advanceTimersByTimeAsync(2_000)
  await adopted
  vi.useRealTimers()
  late.resolve(answer(200, { preferences: { portal_locale: 'de' }, updated_at: null }))
  await vi.waitFor(() => expect(kept.get('svccloud.locale')).toBe('de'))
  expect(reload).not.toHaveBeenCalled()
})

it('has the language that is chosen in the portal as such', async () => {
  chose({ theme: 'dark', locale: 'en' })
  await chooseLanguage('de')
  const [, sent] = outside.requests
  expect(await sent?.json()).toEqual({ preferences: { theme: 'dark', locale: 'de', portal_locale: 'de' } })
})
