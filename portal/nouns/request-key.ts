/** The Idempotency-Key of a form. */
import { useRef } from 'react'
import { uuid } from '../system.ts'

export interface RequestKeys {
  /** The key of what is filled in: the same makes one thing, however often it is sent; an edit makes another. */
  readonly of: (filled: unknown) => string
  /** What was sent is done: the same again is another. */
  readonly renew: () => void
}

/** Keys of one form. Pure but for the keys themselves. */
export function requestKeys(newKey: () => string = uuid): RequestKeys {
  let known: { readonly filled: string; readonly key: string } | undefined
  return {
    of: (filled) => {
      const text = JSON.stringify(filled)
      if (known?.filled !== text) known = { filled: text, key: newKey() }
      return known.key
    },
    renew: () => {
      known = undefined
    },
  }
}

/** Those of a form, as long as it is on the page. */
export function useRequestKeys(): RequestKeys {
  const keys = useRef<RequestKeys>(undefined)
  return (keys.current ??= requestKeys())
}
