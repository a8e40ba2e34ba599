"""Species whose abbreviated genus looks like an option's letter (``C. difficile``, ``E. coli``)."""

SPECIES = (
    "coli|pylori|diff(?:icile)?|aureus|pneumoniae|aeruginosa|albicans|glabrata|tuberculosis|avium|leprae|fragilis|cereus"
    "|faecalis|faecium|fumigatus|niger|meningitidis|gonorrhoeae|influenzae|botulinum|perfringens|tetani|gondii"
    "|burgdorferi|pallidum|histolytica|granulosus|multilocularis|neoformans|jirovecii|vivax|falciparum|trachomatis"
    "|psittaci|burnetii|henselae|catarrhalis|agalactiae|pyogenes|epidermidis|baumannii|cloacae|mirabilis|typhi|cholerae"
    "|jejuni|monocytogenes|anthracis|diphtheriae|acnes|pertussis|haemolyticum|solium|saginata|lumbricoides|haematobium"
    "|mansoni|elegans|marcescens|israelii"
)
"""A regular expression, lower-case; part of `medtasks.filters.option_letter`, whose version changes with it."""
