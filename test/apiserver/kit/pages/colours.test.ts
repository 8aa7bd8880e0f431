import { readFile } from 'node:fs/promises'
import { describe, expect, it } from 'vitest'
import { contrast, faultOfAccent, shadesOf, SURFACES, TEXTS } from '../../../../apiserver/kit/pages/colours.ts'

const THEMES = ['light', 'dark'] as const
const OURS = { light: '#4a45d6', dark: '#8b8df8' }

it('judges by the colours of the stylesheet', async () => {
  const tokens = await readFile('portal/ui/tokens.css', 'utf8')
  const valueOf = (name: string) =>
    new RegExp(`--${name}: light-dark\\((#\\w{6}), (#\\w{6})\\);`).exec(tokens)?.slice(1)
  for (const name of ['canvas', 'surface', 'raised', 'sunken'] as const)
    expect(valueOf(name), name).toEqual(THEMES.map((theme) => SURFACES[theme][name]))
  expect(valueOf('text')).toEqual(THEMES.map((theme) => TEXTS[theme][0]))
  expect(valueOf('text-soft')).toEqual(THEMES.map((theme) => TEXTS[theme][1]))
  expect(valueOf('accent')).toEqual(THEMES.map((theme) => OURS[theme]))
})

it.each([
  ['#000000', '#ffffff', 21],
  ['#777777', '#ffffff', 4.48],
  ['#4a45d6', '#4a45d6', 1],
])('the contrast of %s and %s is %s', (one, other, ratio) => {
  expect(contrast(one, other)).toBeCloseTo(ratio, 2)
  expect(contrast(other, one)).toBe(contrast(one, other))
})

describe.each(THEMES)('in the theme %s', (theme) => {
  it('ours can be read', () => {
    expect(faultOfAccent(OURS, theme)).toBeUndefined()
  })

  it('each shade is a colour', () => {
    for (const shade of Object.values(shadesOf(OURS, theme))) expect(shade).toMatch(/^#[\da-f]{6}$/)
  })

  it.each(['#ffe600', '#777777', '#2f2f2f'])('%s is accepted exactly when its text can be read', (colour) => {
    const accent = { light: colour, dark: colour }
    const shades = shadesOf(accent, theme)
    const pairs = [
      ...[...Object.values(SURFACES[theme]), shades['accent-soft']].map((on) => contrast(colour, on)),
      contrast(shades['on-accent'], colour),
      contrast(shades['on-accent'], shades['accent-strong']),
      ...TEXTS[theme].map((text) => contrast(text, shades['accent-soft'])),
    ]
    expect(faultOfAccent(accent, theme) === undefined).toBe(pairs.every((ratio) => ratio >= 4.5))
  })
})

it('says what cannot be read, and what to choose', () => {
  const yellow = { light: '#ffe600', dark: '#0b1b6b' }
  expect(faultOfAccent(yellow, 'light')).toMatch(
    /^accent\.light: with #ffe600, text of \S+ on \S+ has a contrast of 1\.\d, and needs 4\.5\. Choose a darker/,
  )
  expect(faultOfAccent(yellow, 'dark')).toMatch(/Choose a lighter colour$/)
})
