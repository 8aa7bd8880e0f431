/** Components of the portal in Node, as the server of a page would show them: imported before they are, by `import()`.
 *  Styles are left out. */
import { readFileSync } from 'node:fs'
import { registerHooks } from 'node:module'
import { fileURLToPath } from 'node:url'
import { QueryClientProvider } from '@tanstack/react-query'
import { createElement, type ReactElement } from 'react'
import { renderToStaticMarkup } from 'react-dom/server'
import { transformSync } from 'rolldown/utils'
import { cache } from '../../portal/api/cache.ts'

registerHooks({
  load(url, context, next) {
    const [path = ''] = url.split('?')
    if (path.endsWith('.css')) return { format: 'module', source: '', shortCircuit: true }
    if (!path.endsWith('.tsx')) return next(url, context)
    const file = fileURLToPath(path)
    const { code, errors } = transformSync(file, readFileSync(file, 'utf8'), { jsx: { runtime: 'automatic' } })
    if (errors.length > 0) throw new Error(`${file}: ${errors.map(({ message }) => message).join(', ')}`)
    return { format: 'module', source: code, shortCircuit: true }
  },
})

/** Its HTML, with what the cache of the portal holds. */
export const htmlOf = (element: ReactElement): string =>
  renderToStaticMarkup(createElement(QueryClientProvider, { client: cache }, element))
