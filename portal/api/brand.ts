/** The brand of the deployment, which the server writes into the page: a name, images, and links. Without one, ours. */

export const LINKS = ['imprint', 'privacy', 'terms', 'support', 'status'] as const

/** Images are paths of this origin. */
export interface Brand {
  readonly name: string
  readonly logo?: string
  readonly logo_dark?: string
  readonly icon?: string
  readonly links: Readonly<Partial<Record<(typeof LINKS)[number], string>>>
}

const OURS: Brand = { name: 'svccloud', links: {} }

function readBrand(): Brand {
  const content = document.querySelector<HTMLMetaElement>('meta[name="brand"]')?.content
  return content === undefined ? OURS : (JSON.parse(content) as Brand) // as the server writes it
}

let read: Brand | undefined
export const brand = (): Brand => (read ??= readBrand())
