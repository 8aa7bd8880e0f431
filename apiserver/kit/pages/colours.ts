/** The accent colour of a deployment: which shades the portal uses of it, and whether they can be read. */

/** `#rrggbb`, for each theme of the portal. */
export interface Accent {
  readonly light: string
  readonly dark: string
}
export type Theme = keyof Accent

/** What the portal shows text in the accent colour on; the values of its stylesheet. */
export const SURFACES: Readonly<Record<Theme, Readonly<Record<'canvas' | 'surface' | 'raised' | 'sunken', string>>>> = {
  light: { canvas: '#f7f7f9', surface: '#ffffff', raised: '#ffffff', sunken: '#f1f2f5' },
  dark: { canvas: '#0d0e11', surface: '#141519', raised: '#1b1d22', sunken: '#0f1013' },
}
/** The portal's text, and the softer one. */
export const TEXTS: Readonly<Record<Theme, readonly [string, string]>> = {
  light: ['#16181f', '#585e6d'],
  dark: ['#ecedf1', '#a1a6b3'],
}

/** Shades by the names of the stylesheet. */
export interface Shades {
  readonly accent: string
  /** Under the pointer. */
  readonly 'accent-strong': string
  /** Behind what is selected. */
  readonly 'accent-soft': string
  /** Text on the first two. */
  readonly 'on-accent': string
}

const ON_ACCENT = ['#ffffff', '#0d0e22'] as const
const MIX = {
  light: { towards: '#000000', strong: 0.18, soft: 0.09 },
  dark: { towards: '#ffffff', strong: 0.22, soft: 0.2 },
}

export function shadesOf(colours: Accent, theme: Theme): Shades {
  const accent = colours[theme]
  const { towards, strong, soft } = MIX[theme]
  const [first, second] = ON_ACCENT
  return {
    accent,
    'accent-strong': mixed(accent, towards, strong),
    'accent-soft': mixed(SURFACES[theme].surface, accent, soft),
    'on-accent': contrast(first, accent) >= contrast(second, accent) ? first : second,
  }
}

/** Of WCAG 2.2, level AA, for text of ordinary size. */
export const CONTRAST_MINIMUM = 4.5

/** Why the colour cannot be read, as a sentence; undefined when it can. */
export function faultOfAccent(colours: Accent, theme: Theme): string | undefined {
  const shades = shadesOf(colours, theme)
  const { accent } = shades
  const pairs: readonly (readonly [text: string, on: string])[] = [
    ...[...Object.values(SURFACES[theme]), shades['accent-soft']].map((surface) => [accent, surface] as const),
    ...TEXTS[theme].map((text) => [text, shades['accent-soft']] as const),
    [shades['on-accent'], accent],
    [shades['on-accent'], shades['accent-strong']],
  ]
  const worst = pairs
    .map(([text, on]) => ({ text, on, ratio: contrast(text, on) }))
    .toSorted((a, b) => a.ratio - b.ratio)[0]
  if (worst === undefined || worst.ratio >= CONTRAST_MINIMUM) return undefined
  const ratio = Math.floor(worst.ratio * 10) / 10
  const advice = theme === 'light' ? 'a darker' : 'a lighter'
  return (
    `accent.${theme}: with ${accent}, text of ${worst.text} on ${worst.on} has a contrast of ${ratio}, and needs ` +
    `${CONTRAST_MINIMUM}. Choose ${advice} colour`
  )
}

/** Of two colours, from 1 to 21 (WCAG 2.2). */
export function contrast(one: string, other: string): number {
  const [dark = 0, light = 0] = [luminance(one), luminance(other)].toSorted((a, b) => a - b)
  return (light + 0.05) / (dark + 0.05)
}

function luminance(colour: string): number {
  const [red = 0, green = 0, blue = 0] = channels(colour).map((channel) => {
    const part = channel / 255
    return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4
  })
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue
}

const channels = (colour: string): readonly number[] =>
  [1, 3, 5].map((start) => Number.parseInt(colour.slice(start, start + 2), 16))

/** `share` of the second colour in the first. */
function mixed(one: string, other: string, share: number): string {
  const others = channels(other)
  const parts = channels(one).map((channel, at) => Math.round(channel + ((others[at] ?? 0) - channel) * share))
  return `#${parts.map((part) => part.toString(16).padStart(2, '0')).join('')}`
}
