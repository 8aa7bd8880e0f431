/** The name of the deployment with its mark or its logo, and its links. */
import { Boxes } from 'lucide-react'
import type { ReactNode } from 'react'
import { Link as AriaLink } from 'react-aria-components'
import { brand, LINKS } from '../api/brand.ts'
import { t } from '../texts/index.ts'

export const BrandLink = ({ href }: { readonly href: string }): ReactNode => (
  <AriaLink href={href} className="brand">
    <Name />
  </AriaLink>
)

function Name(): ReactNode {
  const { name, logo, logo_dark: dark, icon } = brand()
  if (logo !== undefined)
    return (
      <>
        <img className={dark === undefined ? 'logo' : 'logo in-light'} src={logo} alt={name} />
        {dark === undefined ? null : <img className="logo in-dark" src={dark} alt={name} />}
      </>
    )
  return (
    <>
      {icon === undefined ? (
        <span className="mark" aria-hidden="true">
          <Boxes />
        </span>
      ) : (
        <img className="icon" src={icon} alt="" />
      )}
      {name}
    </>
  )
}

/** Nothing for a deployment without links. */
export function BrandLinks(): ReactNode {
  const { links } = brand()
  const shown = LINKS.flatMap((name) => (links[name] === undefined ? [] : [[name, links[name]] as const]))
  return shown.length === 0 ? null : (
    <ul className="brand-links">
      {shown.map(([name, href]) => (
        <li key={name}>
          <AriaLink href={href} target="_blank" rel="noopener noreferrer">
            {t().links[name]}
          </AriaLink>
        </li>
      ))}
    </ul>
  )
}
